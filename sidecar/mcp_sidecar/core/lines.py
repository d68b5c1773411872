"""Cutting a byte stream into lines with bounded memory."""

from dataclasses import dataclass

HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line that was longer than allowed; its bytes are gone except for the first few."""

    size: int
    head: bytes


class LineSplitter:
    """Collects chunks into lines; a line above `limit` bytes is dropped whole and reported once."""

    __slots__ = ("_head", "_limit", "_parts", "_size")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """The lines that `data` completes, without their line end."""
        lines: list[bytes | Oversized] = []
        first, *rest = data.split(b"\n")
        if not rest:
            self._hold(first)
            return lines
        if self._size:
            self._hold(first)
            lines.append(self._take())
        else:
            lines.append(self._judge(first))
        last = rest.pop()
        lines.extend([line if len(line) <= self._limit else self._judge(line) for line in rest])
        if last:
            self._hold(last)
        return lines

    def _judge(self, line: bytes) -> bytes | Oversized:
        return line if len(line) <= self._limit else Oversized(len(line), line[:HEAD_BYTES])

    def _hold(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._head is None:
            self._parts.append(chunk)
            if self._size > self._limit:
                self._head = b"".join(self._parts)[:HEAD_BYTES]
                self._parts.clear()

    def _take(self) -> bytes | Oversized:
        head, size = self._head, self._size
        line = b"" if head is not None else b"".join(self._parts)
        self._parts.clear()
        self._size, self._head = 0, None
        return line if head is None else Oversized(size, head)
