"""Server-sent events out of bytes, with bounded memory (HTML standard, section 9.2)."""

import re
from dataclasses import dataclass

_END = re.compile(rb"\r\n|\n|\r")


class EventTooLargeError(Exception):
    """An event above the limit: what follows it in the stream cannot be told apart from it."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event; its data has no line ends of its own but those between data lines."""

    kind: str
    data: bytes
    id: str | None
    """The last id that the stream named; None: it named none."""


class EventReader:
    """Collects chunks into events of at most `limit` bytes of data."""

    __slots__ = ("_buffer", "_data", "_id", "_kind", "_limit", "_scanned", "retry")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._scanned = 0
        self._data: list[bytes] = []
        self._kind = ""
        self._id: str | None = None
        self.retry: float | None = None
        """Seconds that the server asks to wait before its stream is opened again."""

    @property
    def last_id(self) -> str | None:
        """The id of the last event."""
        return self._id

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that a chunk completes.

        Raises:
            EventTooLargeError: one is larger than the limit.

        """
        self._buffer += chunk
        events: list[Event] = []
        start = 0
        while (found := _END.search(self._buffer, max(start, self._scanned))) is not None:
            if found[0] == b"\r" and found.end() == len(self._buffer):
                break  # its line feed may come with the next chunk
            self._line(bytes(self._buffer[start : found.start()]), events)
            start = self._scanned = found.end()
        del self._buffer[:start]
        self._scanned = max(0, len(self._buffer) - 1)
        if len(self._buffer) + sum(map(len, self._data)) > self._limit:
            raise EventTooLargeError(f"an event of more than {self._limit} bytes")
        return events

    def _line(self, line: bytes, events: list[Event]) -> None:
        if not line:
            if self._data:
                events.append(Event(self._kind or "message", b"\n".join(self._data), self._id))
            self._data, self._kind = [], ""
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._kind = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit():
            self.retry = int(value[:9]) / 1000
