"""What was sent on a connection and may not have arrived: the last frames, and how many there were in all."""

from collections import deque
from collections.abc import Iterable

KEPT_BYTES = 256 * 1024
"""Of the last frames: more than a socket holds that nobody reads."""


class Sent:
    """The frames of one connection, the last of them kept."""

    __slots__ = ("_bytes", "_frames", "_limit", "count")

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self.count = 0
        """Of all frames that were sent."""

    def add(self, frames: Iterable[bytes]) -> None:
        """Frames were sent, in this order. One above the bound is not kept, nor is anything before it."""
        kept = self._frames
        for frame in frames:
            self.count += 1
            self._bytes += len(frame)
            kept.append(frame)
        while self._bytes > self._limit:
            self._bytes -= len(kept.popleft())

    def after(self, taken: int) -> list[bytes]:
        """The frames after the first `taken` ones, as far as they are kept, in order."""
        lost = min(self.count - taken, len(self._frames))
        return list(self._frames)[-lost:] if lost > 0 else []
