"""Server-sent events out of bytes, with bounded memory (HTML standard, section 9.2)."""

import re
from dataclasses import dataclass

from mcp_sidecar.core.lines import HEAD_BYTES, TAIL_BYTES, Oversized

_END = re.compile(rb"\r\n|\n|\r")
# Ids go back in a header: what cannot stand there is no id.
_NO_ID = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
MAX_ID_BYTES = 4096
_NAME_BYTES = 16


class EventTooLargeError(Exception):
    """An event above the limit."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event; its data has no line ends of its own but those between data lines."""

    kind: str
    data: bytes
    id: str | None
    """The last id that the stream named; None: it named none."""
    oversized: Oversized | None = None
    """What is left of data above the limit, which is empty then."""


class EventReader:
    """Collects chunks into events of at most `limit` bytes of data; with `drop` a larger one ends nothing."""

    __slots__ = (
        "_buffer",
        "_data",
        "_drop",
        "_id",
        "_kind",
        "_limit",
        "_lost",
        "_next_id",
        "_scanned",
        "retry",
    )

    def __init__(self, limit: int, *, drop: bool = False) -> None:
        self._limit = limit
        self._drop = drop
        self._lost: Oversized | None = None
        """The event that has begun, if it is above the limit."""
        self._buffer = bytearray()
        self._scanned = 0
        self._data: bytes | bytearray | None = None
        """Data of the event that has begun: a single line is not copied."""
        self._kind = ""
        self._id: str | None = None
        self._next_id: str | None = None
        self.retry: float | None = None
        """Seconds that the server asks to wait before its stream is opened again."""

    @property
    def last_id(self) -> str | None:
        """The id of the last event that came whole."""
        return self._id

    def again(self) -> None:
        """The stream begins anew: what had come of an event does not count."""
        self._buffer.clear()
        self._scanned = 0
        self._data, self._lost, self._kind, self._next_id = None, None, "", self._id

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that a chunk completes.

        Raises:
            EventTooLargeError: one is larger than the limit, and is not to be dropped.

        """
        self._buffer += chunk
        events: list[Event] = []
        start = 0
        while (found := _END.search(self._buffer, max(start, self._scanned))) is not None:
            if found[0] == b"\r" and found.end() == len(self._buffer):
                break  # its line feed may come with the next chunk
            self._line(start, found.start(), events)
            start = self._scanned = found.end()
        del self._buffer[:start]
        self._scanned = max(0, len(self._buffer) - 1)
        if self._lost is not None or len(self._buffer) + len(self._data or b"") > self._limit:
            self._overflow()
        return events

    def _overflow(self) -> None:
        """Let go of what has come of an event; a line that has begun leaves a mark: its end is not empty."""
        if not self._drop:
            raise EventTooLargeError(f"an event of more than {self._limit} bytes")
        self._lose(bytes(self._data or b""))
        self._data = None
        if len(self._buffer) > self._limit and not self._buffer.endswith(b"\r"):  # which ends the line
            self._lose(bytes(self._buffer).removeprefix(b"data:").removeprefix(b":").removeprefix(b" "))
            self._buffer = bytearray(b":")
            self._scanned = 0

    def _lose(self, data: bytes) -> None:
        lost = self._lost or Oversized(0, b"", b"")
        head, tail = (lost.head + data[:HEAD_BYTES])[:HEAD_BYTES], lost.tail + data[-TAIL_BYTES:]
        self._lost = Oversized(lost.size + len(data), head, tail[-TAIL_BYTES:])

    def _line(self, start: int, end: int, events: list[Event]) -> None:
        if start == end:
            self._id = self._next_id
            if self._data is not None or self._lost is not None:
                events.append(Event(self._kind or "message", bytes(self._data or b""), self._id, self._lost))
            self._data, self._lost, self._kind = None, None, ""
            return
        with memoryview(self._buffer) as buffer, buffer[start:end] as line:
            name, value = _field(line)
        if self._lost is not None and name in (b"", b"data"):
            self._lose(value)
        elif name == b"data":
            self._more(value)
        elif name == b"event":
            self._kind = value.decode("utf-8", "replace")
        elif name == b"id" and len(value) <= MAX_ID_BYTES and not _NO_ID.search(value):
            self._next_id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit():
            self.retry = int(value[:9]) / 1000

    def _more(self, value: bytes) -> None:
        if self._data is None:
            self._data = value
            return
        if isinstance(self._data, bytes):
            self._data = bytearray(self._data)
        self._data += b"\n"
        self._data += value


def _field(line: memoryview) -> tuple[bytes, bytes]:
    """Name and value of a line, of which a large one is copied once only."""
    colon = bytes(line[:_NAME_BYTES]).find(b":")
    if colon < 0:  # no field has so long a name
        return bytes(line[:_NAME_BYTES]), b""
    begin = colon + 1 + (line[colon + 1 : colon + 2].tobytes() == b" ")
    return bytes(line[:colon]), bytes(line[begin:])
