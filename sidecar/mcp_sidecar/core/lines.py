"""Cutting a byte stream into lines with bounded memory."""

import contextlib
import mmap
from collections.abc import Sequence
from dataclasses import dataclass

HEAD_BYTES = 4096
TAIL_BYTES = 256
# Lines up to this size are handed out as bytes, larger ones as a view of the memory they were collected in.
COPIED_BYTES = 65536
# Lines above this size are collected in memory of their own.
MAPPED_BYTES = 256 * 1024
# What lies behind so much of it is taken in huge pages where the system has them: in small ones 8 MiB cost
# 2,000 page faults, half of all the work that the relay has with such a line. Not what lies before: of many
# waiting answers each would take 2 MiB, however small it is. This way it is at most twice its size.
SMALL_PAGES_BYTES = 2 * 1024 * 1024
_PIECE_BYTES = 256 * 1024

Line = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line that was longer than allowed; its bytes are gone except for the first and the last few."""

    size: int
    head: bytes
    tail: bytes


class LineSplitter:
    """Collects chunks into lines; a line above `limit` bytes is dropped whole and reported once.

    A large line grows in one piece of memory, a view of which is handed out: to collect its chunks and join
    them would take its memory twice. The memory goes with the last view of it.
    """

    __slots__ = ("_dropped", "_head", "_large", "_limit", "_pending", "_size", "_tail")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0  # bytes of the current line
        self._pending = bytearray()
        self._large: memoryview | None = None  # in place of `_pending`
        self._head = self._tail = b""
        self._dropped = False  # the current line is too long

    def feed(self, data: bytes) -> list[Line | Oversized]:
        """The lines that `data` completes, without their line end."""
        lines: list[Line | Oversized] = []
        if self._size:
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
        start, end = self._size, self._size + len(chunk)
        self._size = end
        if self._dropped:
            self._tail = (self._tail + chunk[-TAIL_BYTES:])[-TAIL_BYTES:]
        elif end > self._limit:
            self._drop(start, chunk)
        else:
            if self._large is None and end > MAPPED_BYTES:
                self._large = mapped(self._limit)
                if self._large is not None:
                    self._large[:start], self._pending = self._pending, bytearray()
            if self._large is None:
                self._pending += chunk
            else:
                self._large[start:end] = chunk

    def _drop(self, size: int, chunk: bytes) -> None:
        held = memoryview(self._pending) if self._large is None else self._large[:size]
        self._head = bytes(held[:HEAD_BYTES]) + chunk[: max(0, HEAD_BYTES - size)]
        self._tail = (bytes(held[-TAIL_BYTES:]) + chunk[-TAIL_BYTES:])[-TAIL_BYTES:]
        self._pending, self._large, self._dropped = bytearray(), None, True

    def _take(self) -> Line | Oversized:
        size, line, large, dropped = self._size, self._pending, self._large, self._dropped
        self._size, self._pending, self._large, self._dropped = 0, bytearray(), None, False
        if dropped:
            return Oversized(size, self._head, self._tail)
        if large is not None:
            return large[:size]
        return memoryview(line) if size > COPIED_BYTES else bytes(line)


def has(line: Line, text: bytes) -> bool:
    """Whether a text stands in a line; `in` looks for one item of a view, and never finds a text."""
    if isinstance(line, bytes):
        return text in line
    reach = _PIECE_BYTES + len(text) - 1
    return any(text in bytes(line[start : start + reach]) for start in range(0, len(line), _PIECE_BYTES))


def joined(parts: Sequence[Line]) -> Line:
    """The parts in one, a large one in memory of its own."""
    size = sum(map(len, parts))
    whole, start = mapped(size) if size > MAPPED_BYTES else None, 0
    if whole is None:
        return b"".join(parts)
    for part in parts:
        whole[start : start + len(part)] = part
        start += len(part)
    return whole


def mapped(size: int) -> memoryview | None:
    """Memory that is the system's again with the end of the last view; what is not touched takes none.

    None where the system does not promise so much at once: a heap that grows bit by bit may still do.
    """
    try:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        return None
    if size > SMALL_PAGES_BYTES:
        with contextlib.suppress(OSError):  # of systems without huge pages, where small ones do
            memory.madvise(mmap.MADV_HUGEPAGE, SMALL_PAGES_BYTES)
    return memoryview(memory)
