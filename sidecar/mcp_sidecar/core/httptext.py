"""HTTP/1.1 as the relay speaks it: what the head of a request may say, and how replies are written.

The parser (llhttp, strict) refuses most of what is malformed: both framings at once, lengths that are no
plain numbers, bare line feeds, folded lines, control characters. Here stands what it lets pass.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

MAX_HEAD_BYTES = 32 * 1024
MAX_HEADERS = 100
# A refused request with a body up to this size is read to its end, so that its connection stays usable.
SKIPPED_BYTES = 64 * 1024

Headers = dict[bytes, bytes]
"""Names in lower case."""
Field = tuple[bytes, bytes]

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
JSON_FIELD = (b"content-type", b"application/json")

# Decisions rest on these: two of them may mean one thing to a proxy in front and another here.
_ONCE = frozenset(
    {
        b"authorization", b"content-length", b"content-type", b"expect", b"host", b"mcp-protocol-version",
        b"mcp-session-id", b"origin", b"transfer-encoding",
    }
)  # fmt: skip
REQUEST_ID = b"x-request-id"
# What goes back to the client, and into a log: printable, without spaces, of a size.
_USABLE_ID = re.compile(rb"[!-~]{1,128}")
# These repeat what a message says; a value with a line feed is never what it says.
_REPEATING = (b"mcp-method", b"mcp-name", b"mcp-param-")
_STATUS_LINES = {s.value: b"HTTP/1.1 %d %b\r\n" % (s.value, s.phrase.encode()) for s in HTTPStatus}
_JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_CLOSE = b"connection: close\r\n"


class HeadError(Exception):
    """A head that is refused; after the reply the connection ends. The message is for the client."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class Head:
    """The head of a request."""

    method: bytes
    path: bytes
    """Path of the target as it was written, not decoded."""
    query: bytes
    headers: Headers
    http10: bool = False
    """The client speaks HTTP/1.0: it gets no chunks, and one reply a connection."""
    echo: Sequence[Field] = ()
    """What every reply to this request repeats of it: its X-Request-Id, if that is a usable one."""
    memo: Any = None
    """What the application found out from this head; it is there again with the next of the same text."""
    subject: str = ""
    """Who sent it, as the application found out."""
    expires: float = 0.0
    """Until when that is so, in seconds since the Unix epoch; 0: for good."""

    @property
    def length(self) -> int | None:
        """The announced size of the body; None when it comes in chunks."""
        if b"transfer-encoding" in self.headers:
            return None
        return int(self.headers.get(b"content-length", b"0"))

    @property
    def awaits_continue(self) -> bool:
        """Whether the client sends its body only when it is told to."""
        return b"expect" in self.headers and not self.http10


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply; a body is JSON unless `headers` name another type."""

    status: int
    body: bytes = b""
    headers: Sequence[Field] = ()


def head(method: bytes, url: bytes, version: str, headers: Headers) -> Head:
    """Understand a request's head.

    Args:
        method: as sent.
        url: the request's target, in origin or absolute form.
        version: "1.1" or whatever else the client claims to speak.
        headers: names in lower case, values without surrounding whitespace.

    Raises:
        HeadError: it is refused.

    """
    if version not in ("1.1", "1.0"):
        raise HeadError(505, "HTTP version not supported: speak HTTP/1.1")
    http10 = version == "1.0"
    if b"host" not in headers and not http10:
        raise HeadError(400, "Bad request: the header Host is missing")
    if url[:1] != b"/":
        url = _from_absolute(url, headers)
    coding = headers.get(b"transfer-encoding")
    if coding is not None and (http10 or coding.lower() != b"chunked"):
        raise HeadError(400, "Bad request: the only transfer coding is chunked, and it needs HTTP/1.1")
    if headers.get(b"expect", b"100-continue").lower() != b"100-continue":
        raise HeadError(417, "Expectation failed: the only one that can be met is 100-continue")
    if b"#" in url:
        raise HeadError(400, "Bad request: a fragment has no place in the target")
    path, _, query = url.partition(b"?")
    return Head(method, path, query, headers, http10, _echo(headers))


def _echo(headers: Headers) -> Sequence[Field]:
    given = headers.get(REQUEST_ID)
    return ((REQUEST_ID, given),) if given is not None and _USABLE_ID.fullmatch(given) else ()


def _from_absolute(url: bytes, headers: Headers) -> bytes:
    """The path and query of `http://authority/path?query`; the authority takes the place of Host."""
    scheme, separator, rest = url.partition(b"://")
    if not separator or scheme.lower() not in (b"http", b"https"):
        return url
    authority, slash, path = rest.partition(b"/")
    if not authority or b"@" in authority or b"?" in authority:
        raise HeadError(400, "Bad request: the target makes no sense")
    headers[b"host"] = authority
    return slash + path if slash else b"/"


def repeated(name: bytes, first: bytes, second: bytes) -> bytes:
    """The value of a header that came twice.

    Raises:
        HeadError: it may come only once.

    """
    if name in _ONCE:
        raise HeadError(400, f"Bad request: the header {name.decode()} came more than once")
    if name.startswith(_REPEATING):
        return b"%b\n%b" % (first, second)
    return b"%b, %b" % (first, second)


def json_reply(body: bytes) -> bytes:
    """The most frequent reply: 200 with JSON, on a connection that stays open."""
    return _JSON_HEAD % len(body) + body


def reply_head(status: int, fields: Sequence[Field], *, close: bool) -> bytes:
    """The head of a reply."""
    lines = [_STATUS_LINES[status], *(b"%b: %b\r\n" % field for field in fields)]
    if close:
        lines.append(_CLOSE)
    lines.append(b"\r\n")
    return b"".join(lines)


def whole(reply: Reply, *, close: bool, bodiless: bool = False, echo: Sequence[Field] = ()) -> bytes:
    """A reply as it goes out; `bodiless` answers HEAD: the head says what GET would have brought.

    `echo` is what the reply repeats of its request.
    """
    fields = [(b"content-length", b"%d" % len(reply.body)), *reply.headers, *echo]
    if reply.body and all(name != b"content-type" for name, _ in reply.headers):
        fields.append(JSON_FIELD)
    text = reply_head(reply.status, fields, close=close)
    return text if bodiless else text + reply.body


def chunk(data: bytes | memoryview) -> bytes:
    """One chunk of a body whose size nobody knows yet; `data` is not empty."""
    return b"".join((b"%x\r\n" % len(data), data, b"\r\n"))
