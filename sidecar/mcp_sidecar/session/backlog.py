"""What the server must hear though it cannot be told just now: answers, refusals, cancellations.

Requests never wait here: whoever calls learns at once that it cannot be done.
"""

from collections import deque
from collections.abc import Callable

MAX_FRAMES = 1000
MAX_BYTES = 4 * 1024 * 1024


class Backlog:
    """Frames in the order they came, bounded; `write` gives False when it cannot take one."""

    def __init__(self, write: Callable[[bytes], bool]) -> None:
        self._write = write
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self.waiting = False
        """Whether there is anything."""

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, frame: bytes) -> bool:
        """Keep a frame; False when there is no room."""
        if len(self._frames) >= MAX_FRAMES or self._bytes + len(frame) > MAX_BYTES:
            return False
        self._frames.append(frame)
        self._bytes += len(frame)
        self.waiting = True
        return True

    def flush(self) -> None:
        """Write what can be written."""
        while self._frames and self._write(self._frames[0]):
            self._bytes -= len(self._frames.popleft())
        self.waiting = bool(self._frames)

    def clear(self) -> None:
        """The process is gone, and whatever it should have heard."""
        self._frames.clear()
        self._bytes = 0
        self.waiting = False
