"""Cancellations that came before the request they are meant for."""

from collections.abc import Hashable

LIMIT = 10_000
LIFETIME = 60.0  # seconds


class EarlyCancels:
    """Kept until their request comes: at most `LIMIT`, the oldest dropped first, each for `LIFETIME`."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[Hashable, float] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, key: Hashable, now: float) -> None:
        """Remember a cancellation."""
        self._seen.pop(key, None)
        self._seen[key] = now
        if len(self._seen) > LIMIT:
            del self._seen[next(iter(self._seen))]

    def take(self, key: Hashable, now: float) -> bool:
        """Whether the request that comes now was cancelled before; asked once."""
        if not self._seen:
            return False
        at = self._seen.pop(key, None)
        return at is not None and now - at <= LIFETIME
