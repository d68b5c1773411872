"""What sessions want from the shared server: subscribed resources and the level of its log.

The server knows one client only, so it gets the union: a resource is subscribed while anybody wants it, and
the level is the most verbose that anybody asked for.
"""

from collections.abc import Mapping, Sequence

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_RANK = {name: rank for rank, name in enumerate(LEVELS)}


class Interests:
    """Subscriptions and log levels by session key."""

    def __init__(self) -> None:
        self.subscribers: dict[str, set[str]] = {}
        self.levels: dict[str, str] = {}

    def subscribe(self, key: str, uri: str) -> None:
        """Record that a session wants `resources/updated` for `uri`."""
        self.subscribers.setdefault(uri, set()).add(key)

    def unsubscribe(self, key: str, uri: str) -> bool:
        """Forget it; True when nobody wants the resource any more."""
        keys = self.subscribers.get(uri, set())
        keys.discard(key)
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
        return wanted is None or not isinstance(level, str) or _RANK.get(level, 99) >= _RANK[wanted]

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
                self.subscribers[str(uri)] = {str(key) for key in keys}
        for key, level in levels.items() if isinstance(levels, Mapping) else ():
            if level in _RANK:
                self.levels[str(key)] = level
