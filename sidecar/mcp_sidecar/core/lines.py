"""Cutting a byte stream into lines with bounded memory."""

from dataclasses import dataclass

HEAD_BYTES = 4096
TAIL_BYTES = 256
# Lines up to this size are handed out as bytes, larger ones as the bytearray they were collected in.
COPIED_BYTES = 65536

Line = bytes | bytearray


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line that was longer than allowed; its bytes are gone except for the first and the last few."""

    size: int
    head: bytes
    tail: bytes


class LineSplitter:
    """Collects chunks into lines; a line above `limit` bytes is dropped whole and reported once.

    A large line grows in one bytearray that is then handed out itself: to collect its chunks and join them
    would take its memory twice.
    """

    __slots__ = ("_dropped", "_head", "_limit", "_pending", "_tail")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pending = bytearray()
        self._head = self._tail = b""
        self._dropped = 0  # bytes of the current line, once it is too long

    def feed(self, data: bytes) -> list[Line | Oversized]:
        """The lines that `data` completes, without their line end."""
        lines: list[Line | Oversized] = []
        if self._pending or self._dropped:
            end = data.find(b"\n")
            self._hold(data if end < 0 else data[:end])
            if end < 0:
                return lines
            lines.append(self._take())
            data = data[end + 1 :]
        *whole, last = data.split(b"\n")
        lines += [
            line if len(line) <= self._limit else Oversized(len(line), line[:HEAD_BYTES], line[-TAIL_BYTES:])
            for line in whole
        ]
        if last:
            self._hold(last)
        return lines

    def _hold(self, chunk: bytes) -> None:
        if self._dropped:
            self._dropped += len(chunk)
            self._tail = (self._tail + chunk[-TAIL_BYTES:])[-TAIL_BYTES:]
        elif len(self._pending) + len(chunk) <= self._limit:
            self._pending += chunk
        else:
            self._head = bytes(self._pending[:HEAD_BYTES]) + chunk[: max(0, HEAD_BYTES - len(self._pending))]
            self._tail = (bytes(self._pending[-TAIL_BYTES:]) + chunk[-TAIL_BYTES:])[-TAIL_BYTES:]
            self._dropped = len(self._pending) + len(chunk)
            self._pending = bytearray()

    def _take(self) -> Line | Oversized:
        line, dropped = self._pending, self._dropped
        self._pending, self._dropped = bytearray(), 0
        if dropped:
            return Oversized(dropped, self._head, self._tail)
        return line if len(line) > COPIED_BYTES else bytes(line)
