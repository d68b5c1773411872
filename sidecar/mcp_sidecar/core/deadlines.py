"""Deadlines that all lie the same time ahead: the next to pass is always the oldest."""

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Deadlines(Generic[K]):
    """Keys with a common delay in seconds, in the order of their deadlines; times are any steady clock's."""

    __slots__ = ("_due", "delay")

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self._due: dict[K, float] = {}

    def __len__(self) -> int:
        return len(self._due)

    def add(self, key: K, now: float) -> None:
        """Let `key` come due `delay` seconds from now; a key that was there starts anew."""
        if key in self._due:
            del self._due[key]  # else it would keep its place in the order
        self._due[key] = now + self.delay

    def discard(self, key: K) -> None:
        """Forget a key, whether it was there or not."""
        self._due.pop(key, None)

    def next_at(self) -> float | None:
        """When the next key comes due."""
        return next(iter(self._due.values()), None)

    def expire(self, now: float) -> list[K]:
        """Take out the keys that are due."""
        due = []
        for key, at in self._due.items():
            if at > now:
                break
            due.append(key)
        for key in due:
            del self._due[key]
        return due
