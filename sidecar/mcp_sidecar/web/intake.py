"""Requests out of a connection's bytes: parsed, bounded, and refused before anything is kept of them."""

import asyncio
from enum import Enum
from typing import Protocol

from httptools import (
    HttpParserCallbackError,
    HttpParserError,
    HttpParserInvalidMethodError,
    HttpParserUpgrade,
    HttpRequestParser,
)

from mcp_sidecar.core import httptext
from mcp_sidecar.core.httptext import Head, HeadError
from mcp_sidecar.web.exchange import Application, Exchange, Wire

HEAD_SECONDS = 10.0
BODY_SECONDS = 30.0
"""Time without a byte of the body."""
REQUEST_SECONDS = 300.0
"""Time for a whole request, however steadily it trickles in."""

_NOBODY = Head(b"", b"", b"", {})
_NO_PARSER = HttpRequestParser(object())
_SPACE = b" \t"
_HEAD_END = b"\r\n\r\n"
_KNOWN_BYTES = 4096
"""A head above this size is not kept to know the next one by: there may be thousands of connections."""


class Sink(Wire, Protocol):
    """What takes the requests."""

    @property
    def idle(self) -> bool:
        """Whether no earlier request waits for its reply."""

    def enter(self, exchange: Exchange) -> None:
        """Take a request that is complete, or one that is refused."""

    def defect(self, error: BaseException | None) -> None:
        """A request met a defect of the relay."""

    def unfinished(self) -> None:
        """The head of a request came in part."""

    def passed(self) -> None:
        """The head of a request was found good."""


class Phase(Enum):
    """What of a request is on its way."""

    NONE = "none"
    HEAD = "head"
    BODY = "body"


_NONE, _HEAD, _BODY = Phase  # see core/frames.py


class Intake:
    """Reads the requests of one connection. The parser calls back from within `feed`."""

    __slots__ = (
        "_application", "_began", "_body", "_body_size", "_exchange", "_fields", "_head_size",
        "_headers", "_known_head", "_known_size", "_known_text", "_loop", "_moved", "_parser", "_passed",
        "_plain", "_sink", "_unfinished", "_url", "deaf", "phase",
    )  # fmt: skip
    __deletable__ = ("_sink",)  # compiled classes have to say so

    def __init__(self, sink: Sink, application: Application, loop: asyncio.AbstractEventLoop) -> None:
        self._sink = sink
        self._application = application
        self._loop = loop
        self._parser = HttpRequestParser(self)
        self.phase = _NONE
        self.deaf = False
        """Whatever else comes is not read any more."""
        self._began = self._moved = 0.0
        self._url = b""
        self._headers: httptext.Headers = {}
        self._fields = self._head_size = 0
        self._unfinished = -1  # bytes of an unfinished head, without the piece in which it began
        self._plain = True  # nothing asks for another protocol
        self._exchange: Exchange | None = None  # its body is being read
        self._body: list[bytes] = []
        self._body_size = 0
        self._passed: Head | None = None  # a head that passed in the piece that is being parsed
        self._known_head, self._known_text = _NOBODY, b""  # the head that passed last, and its text
        self._known_size = -1  # of the text with the body that it announces; -1: there is none

    def feed(self, data: bytes) -> None:
        """Take bytes of the client."""
        first = self.phase is _NONE
        if len(data) == self._known_size and first and not self.deaf and data.startswith(self._known_text):
            # To the byte the head that passed before, with the whole body: nothing about it is decided anew.
            exchange = Exchange(self._sink, self._known_head, keep_alive=True)
            exchange.body = data[len(self._known_text) :]
            self._sink.enter(exchange)
            return
        rest = data
        while rest and not self.deaf:
            rest = self._parse(rest)
        if first and self._passed is not None:
            self._remember(data, self._passed)
        self._passed = None
        if self.phase is _HEAD:
            # A header is reported when it is whole, so one without end has to be noticed here.
            self._unfinished = self._unfinished + len(data) if self._unfinished >= 0 else 0
            self._sink.unfinished()
            if self._unfinished > httptext.MAX_HEAD_BYTES:
                self._too_much_head()

    def overdue(self, now: float) -> bool:
        """Whether the request that is on its way comes too slowly."""
        if self.phase is _NONE or self.deaf:
            return False
        limit = HEAD_SECONDS if self.phase is _HEAD else REQUEST_SECONDS
        return now - self._began > limit or now - self._moved > BODY_SECONDS

    def wait_anew(self) -> None:
        """The client could not send for a while: its time starts again."""
        self._began = self._moved = self._loop.time()

    def _remember(self, data: bytes, head: Head) -> None:
        """Keep the text of a head that passed, if `data` is exactly its request."""
        end = data.find(_HEAD_END) + len(_HEAD_END)
        if end > _KNOWN_BYTES:
            return
        if end + (head.length or 0) == len(data):  # with more than one request it would not add up
            self._known_head, self._known_text, self._known_size = head, data[:end], len(data)

    def _parse(self, data: bytes) -> bytes:
        """Parse; gives what is left to parse after a request that offered another protocol."""
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            return self._stay(data[upgrade.args[0] :])
        except HttpParserCallbackError as error:
            self.deaf = True
            self._sink.defect(error.__context__)
        except HttpParserInvalidMethodError:
            self.refuse(405, "method", "Method not allowed")
        except HttpParserError as error:
            self.refuse(400, "malformed", f"Bad request: {error}")
        return b""

    def _stay(self, rest: bytes) -> bytes:
        """Read a request that offers another protocol again, without the offer: it may be ignored.

        The parser stops after such a head, so its body would be taken for the next request.
        """
        method = self._parser.get_method()
        if method == b"CONNECT":
            self.refuse(405, "method", "Method not allowed")
            return b""
        lines = [b"%b: %b\r\n" % item for item in self._headers.items() if item[0] != b"upgrade"]
        version = self._parser.get_http_version().encode()
        self._parser = HttpRequestParser(self)
        return b"%b %b HTTP/%b\r\n%b\r\n%b" % (method, self._url, version, b"".join(lines), rest)

    # What the parser reports.

    def on_message_begin(self) -> None:
        """A request begins."""
        self.phase = _HEAD
        self._began = self._moved = self._loop.time()
        self._url = b""
        self._headers = {}
        self._fields = self._head_size = 0
        self._unfinished = -1
        self._body = []
        self._body_size = 0

    def on_url(self, part: bytes) -> None:
        """A part of the target."""
        self._url += part
        self._head_size += len(part)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or after a body in chunks a trailer, which nobody wants."""
        self._fields += 1
        self._head_size += len(name) + len(value)
        if self._fields > httptext.MAX_HEADERS or self._head_size > httptext.MAX_HEAD_BYTES:
            self._too_much_head()
        elif self.phase is _HEAD and not self.deaf:
            name, value = name.lower(), value.rstrip(_SPACE)  # the parser leaves that at the end
            if name not in self._headers:
                self._headers[name] = value
                return
            try:
                self._headers[name] = httptext.repeated(name, self._headers[name], value)
            except HeadError as error:
                self.refuse(error.status, "malformed", str(error))

    def on_headers_complete(self) -> None:
        """The head is there: whether the request is refused is decided before its body is read."""
        parser = self._parser
        self._plain = not parser.should_upgrade()
        if self.deaf or not self._plain:
            return
        try:
            head = httptext.head(parser.get_method(), self._url, parser.get_http_version(), self._headers)
        except HeadError as error:
            self.refuse(error.status, "malformed", str(error))
            return
        self.phase = _BODY
        keep_alive = not head.http10 and parser.should_keep_alive()
        self._exchange = Exchange(self._sink, head, keep_alive=keep_alive)
        self._judge(self._exchange)

    def _judge(self, exchange: Exchange) -> None:
        """Decide what becomes of a request whose body is still to come."""
        head, length = exchange.head, exchange.head.length
        exchange.refusal = self._application.refusal(head)
        if exchange.refusal is not None:
            if head.awaits_continue or length is None or length > httptext.SKIPPED_BYTES:
                self._end_with(exchange)
            return
        self._sink.passed()
        if length is not None and length > self._application.body_limit:
            self._too_large()
        elif length and not exchange.take_body(length):
            self._no_room()
        elif head.awaits_continue:
            if length != 0 and self._sink.idle:
                self._sink.write(httptext.CONTINUE)
        elif length is not None and exchange.keep_alive:
            self._passed = head

    def on_body(self, part: bytes) -> None:
        """A part of the body."""
        if self.deaf:
            return
        self._moved = self._loop.time()
        self._body_size += len(part)
        exchange = self._exchange
        if exchange is None or exchange.refusal is not None:
            return
        if self._body_size > self._application.body_limit:
            self._too_large()
        elif exchange.head.length is None and not exchange.take_body(len(part)):
            self._no_room()
        else:
            self._body.append(part)

    def on_message_complete(self) -> None:
        """A request is complete."""
        exchange, self._exchange = self._exchange, None
        if self.deaf or exchange is None or not self._plain:
            return
        self.phase = _NONE
        exchange.body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body = []
        if not exchange.keep_alive:
            self.deaf = True
        self._sink.enter(exchange)

    # Requests that end the connection.

    def refuse(self, status: int, reason: str, text: str) -> None:
        """Refuse the request that is on its way, and read nothing more."""
        if not self.deaf:
            exchange = self._exchange or Exchange(self._sink, _NOBODY, keep_alive=False)
            exchange.refusal = self._application.problem(status, reason, text)
            self._end_with(exchange)

    def _too_much_head(self) -> None:
        text = f"The head of a request may have {httptext.MAX_HEAD_BYTES} bytes"
        self.refuse(431, "head_too_large", text)

    def _too_large(self) -> None:
        limit = self._application.body_limit
        self.refuse(413, "too_large", f"Content too large: a message may have {limit} bytes")

    def _no_room(self) -> None:
        self.refuse(503, "busy", "Service unavailable: too many large requests at once, try again later")

    def doubt(self) -> None:
        """Decide anew about the next request, even if it is like the last one."""
        self._known_head, self._known_text, self._known_size = _NOBODY, b"", -1

    def forget(self) -> None:
        """The client is gone: what came of a request is dropped, and nothing refers to the connection."""
        self.deaf = True
        self._headers, self._body = {}, []
        self.doubt()
        if self._exchange is not None:
            self._exchange.drop_body()
            self._exchange = None
        # Left to the collector of cycles, the connections of a flood would stay for long.
        self._parser = _NO_PARSER
        del self._sink

    def _end_with(self, exchange: Exchange) -> None:
        self._exchange = None
        self._body = []
        exchange.drop_body()
        self.phase = _NONE
        self.deaf = True
        exchange.keep_alive = False
        self._sink.enter(exchange)
