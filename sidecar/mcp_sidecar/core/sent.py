"""What was sent on a connection and may not have arrived: the last frames, and how many there were in all."""

from collections import deque
from collections.abc import Iterable

KEPT_BYTES = 512 * 1024
"""Of the last frames: more than a socket that nobody reads (212 KiB) and a reader's buffer (64 KiB) hold."""


class Sent:
    """The frames of one connection, the last of them kept."""

    __slots__ = ("_bytes", "_frames", "_limit", "count")

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self.count = 0
        """Of all frames that were sent."""

    @property
    def large(self) -> bool:
        """Whether more is kept than is needed of frames that are on their way."""
        return self._bytes > 2 * self._limit

    def add(self, frames: Iterable[bytes], waiting: int | None = 0) -> None:
        """Frames were sent, in this order; so many bytes wait in the sender's own memory.

        Kept is at least what waits and as much as is on its way, in whole frames, however large one is;
        everything where nobody knows how much waits (None).
        """
        kept = self._frames
        for frame in frames:
            self.count += 1
            self._bytes += len(frame)
            kept.append(frame)
        if waiting is None:
            return
        bound = self._limit + waiting
        while self._bytes > bound and self._bytes - len(kept[0]) >= bound:
            self._bytes -= len(kept.popleft())

    def let_go(self, count: int) -> None:
        """So many of all frames have arrived by now: keep none of them beyond the bound."""
        while self._bytes > self._limit and self.count - len(self._frames) < count:
            self._bytes -= len(self._frames.popleft())

    def after(self, taken: int) -> list[bytes]:
        """The frames after the first `taken` ones, as far as they are kept, in order."""
        lost = min(self.count - taken, len(self._frames))
        return list(self._frames)[-lost:] if lost > 0 else []
