"""What sessions want from the shared server: subscribed resources and the level of its log.

The server knows one client only, so it gets the union: a resource is subscribed while anybody wants it, and
the level is the most verbose that anybody asked for. All of it is kept in memory and in a file, bounded.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from mcp_sidecar.core import jsontext

MAX_URI_BYTES = 2048
MAX_SUBSCRIPTIONS = 256
"""Of one session."""
MAX_TOTAL_BYTES = 2 * 1024 * 1024
"""Of the subscriptions of all sessions, as they are written to the file."""
_KEY_BYTES = 64  # a session's key in the file, and what is around it
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_RANK = {name: rank for rank, name in enumerate(LEVELS)}


def covers(wanted: str | None, level: object) -> bool:
    """Whether who wants messages from `wanted` on wants one of `level`; an unknown level is above all."""
    if wanted is None:
        return False
    return not isinstance(level, str) or _RANK.get(level, len(LEVELS)) >= _RANK[wanted]


def more_verbose(level: str, than: str) -> bool:
    """Whether a level lets more messages pass than another one."""
    return _RANK[level] < _RANK.get(than, len(LEVELS))


class Interests:
    """Subscriptions and log levels by session key; `subscribers` is to be read only."""

    def __init__(self) -> None:
        self.subscribers: dict[str, set[str]] = {}
        self.levels: dict[str, str] = {}
        self._number: Counter[str] = Counter()
        self._bytes = 0

    def refusal(self, key: str, uri: str) -> str | None:
        """Why a session cannot have one more subscription; None when it can, or has this one."""
        if key in self.subscribers.get(uri, ()):
            return None
        if len(uri.encode("utf-8", "surrogatepass")) > MAX_URI_BYTES:
            return f"a URI to subscribe to may have {MAX_URI_BYTES} bytes"
        if self._number[key] >= MAX_SUBSCRIPTIONS:
            return f"a session may have {MAX_SUBSCRIPTIONS} subscriptions; end one first"
        if self._bytes + _cost(uri) > MAX_TOTAL_BYTES:
            return "all sessions together have as many subscriptions as this server may have; try again later"
        return None

    def claim(self, key: str, uri: str) -> None:
        """Take the room of a subscription that the server was asked for and has not granted yet."""
        self._number[key] += 1
        self._bytes += _cost(uri)

    def release(self, key: str, uri: str) -> None:
        """Give the room back."""
        self._number[key] -= 1
        self._bytes -= _cost(uri)
        if not self._number[key]:
            del self._number[key]

    def subscribe(self, key: str, uri: str) -> None:
        """Record that a session wants `resources/updated` for `uri`."""
        keys = self.subscribers.setdefault(uri, set())
        if key not in keys:
            keys.add(key)
            self.claim(key, uri)

    def unsubscribe(self, key: str, uri: str) -> bool:
        """Forget it; True when nobody wants the resource any more."""
        keys = self.subscribers.get(uri, set())
        if key in keys:
            keys.remove(key)
            self.release(key, uri)
        if keys:
            return False
        return self.subscribers.pop(uri, None) is not None

    def forget(self, key: str) -> list[str]:
        """Forget a session; the resources that nobody wants any more."""
        self.levels.pop(key, None)
        return [
            uri
            for uri in list(self.subscribers)
            if key in self.subscribers[uri] and self.unsubscribe(key, uri)
        ]

    def sessions(self) -> set[str]:
        """The sessions that want anything."""
        return set(self.levels).union(*self.subscribers.values())

    def has(self, key: str) -> bool:
        """Whether a session wants anything."""
        return key in self.levels or self._number[key] > 0

    def wanted_by(self, uri: str) -> set[str]:
        """Keys of the sessions to tell about `uri`: it, or a resource above it, is subscribed."""
        keys: set[str] = set()
        for subscribed, owners in self.subscribers.items():
            if uri == subscribed or uri.startswith(subscribed.rstrip("/") + "/"):
                keys |= owners
        return keys

    def level(self) -> str | None:
        """The most verbose level that any session asked for."""
        return min(self.levels.values(), key=_RANK.__getitem__, default=None)

    def level_with(self, key: str, level: str) -> str:
        """The level the server needs once this session's level is `level`."""
        return min([level, *(v for k, v in self.levels.items() if k != key)], key=_RANK.__getitem__)

    def shows(self, key: str, level: object) -> bool:
        """Whether a session wants a log message of this level; it does when it never named one."""
        wanted = self.levels.get(key)
        return wanted is None or covers(wanted, level)

    def dump(self) -> dict[str, object]:
        """As plain JSON."""
        return {
            "subscribers": {uri: sorted(keys) for uri, keys in self.subscribers.items()},
            "levels": self.levels,
        }

    def load(self, data: Mapping[str, object]) -> None:
        """From what `dump` gave; anything else is ignored."""
        subscribers, levels = data.get("subscribers"), data.get("levels")
        for uri, keys in subscribers.items() if isinstance(subscribers, Mapping) else ():
            if isinstance(keys, Sequence):
                self._load(str(uri), keys)
        for key, level in levels.items() if isinstance(levels, Mapping) else ():
            if level in _RANK:
                self.levels[str(key)] = level

    def _load(self, uri: str, keys: Iterable[object]) -> None:
        for key in keys:
            self.subscribe(str(key), uri)


def _cost(uri: str) -> int:
    return len(jsontext.dumps(uri)) + _KEY_BYTES
