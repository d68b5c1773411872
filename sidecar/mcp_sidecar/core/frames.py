"""JSON-RPC frames: what came from whom, and the few frames the relay writes itself."""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any

from mcp_sidecar.core import jsontext
from mcp_sidecar.core.lines import Line

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_ERROR = -32000
TIMED_OUT = -32001

NULL = b"null"
FIRST_OWN_ID = 1 << 32
"""The ids under which the server knows requests are at least this."""
_ID_TYPES = (str, int, float)
# Answers above this size pass on without being parsed: parsing 32 MiB costs 100 ms and twice the memory. Of
# these it is known that they begin and end as answers do and are UTF-8; the rest the client has to judge.
TRUSTED_BYTES = 65536

_BIG_ANSWER = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?(?:"id"\s*:\s*(\d{1,18})\s*,\s*)?'
    rb'(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"(result|error)"\s*:'
)
_BIG_TAIL = re.compile(
    rb'\}\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?,\s*"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$'
)
_TAIL_REACH = 128
_BIG_END = re.compile(rb"\}\s*\}\s*$")  # of a result or an error, and of the answer


class Kind(Enum):
    """What a frame is."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    RESPONSE = "response"


# Python 3.11 looks a member of an enumeration up ten times as slowly as a name: for the way of every call.
REQUEST, NOTIFICATION, RESPONSE = Kind.REQUEST, Kind.NOTIFICATION, Kind.RESPONSE


class FrameError(Exception):
    """A frame that cannot be used; `code` and the message are for the peer, `raw_id` is the id it gave."""

    def __init__(self, code: int, message: str, raw_id: bytes = NULL) -> None:
        super().__init__(message)
        self.code = code
        self.raw_id = raw_id


@dataclass(slots=True)
class Frame:
    """One understood frame.

    `data` is its text on one line, without line end; the id of a request or response stands at
    `data[start:end]`. `params` is empty when there are none.
    """

    kind: Kind
    data: bytes
    method: str
    id: Any
    params: dict[str, Any]
    start: int
    end: int
    failed: bool = False
    """A response that carries an error."""

    @property
    def raw_id(self) -> bytes:
        """The id as it was written."""
        return self.data[self.start : self.end]

    def with_id(self, raw: bytes) -> bytes:
        """The frame under another id."""
        return b"%b%b%b" % (self.data[: self.start], raw, self.data[self.end :])


@dataclass(frozen=True, slots=True)
class BigAnswer:
    """A large response of which only the id was looked up."""

    id: int
    failed: bool
    start: int
    end: int


def parse(data: bytes) -> Frame:
    """Understand one frame of either side; those of clients have to have one reading, too: `readings.parse`.

    Raises:
        FrameError: not JSON, a batch, or no JSON-RPC 2.0 frame.

    """
    data = jsontext.one_line(data)
    return understood(data, load(data))


def load(data: bytes) -> dict[str, Any]:
    """The object that a frame's text stands for.

    Raises:
        FrameError: not JSON, a batch, or no JSON-RPC 2.0 object.

    """
    try:
        message = jsontext.loads(data)
    except jsontext.JsonError as error:
        raise FrameError(PARSE_ERROR, f"Parse error: {error}") from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise _no_frame(message)
    return message


def understood(data: bytes, message: dict[str, Any]) -> Frame:
    """The frame of this text on one line, which stands for this object.

    Raises:
        FrameError: it is no JSON-RPC 2.0 frame.

    """
    if "method" in message:
        return _call(data, message)
    if "id" in message and ("result" in message or "error" in message):
        start, end = jsontext.find_id(data, message["id"])
        return Frame(RESPONSE, data, "", message["id"], {}, start, end, failed="error" in message)
    raise FrameError(INVALID_REQUEST, "Invalid request: neither a method nor the answer to a request")


def _no_frame(message: Any) -> FrameError:
    if isinstance(message, list):
        return FrameError(INVALID_REQUEST, "Invalid request: batches are not supported")
    text = 'Invalid request: not a JSON-RPC 2.0 object ("jsonrpc": "2.0" is missing)'
    return FrameError(INVALID_REQUEST, text)


def _call(data: bytes, message: dict[str, Any]) -> Frame:
    method, params = message["method"], message.get("params")
    if not isinstance(method, str):
        raise FrameError(INVALID_REQUEST, "Invalid request: the method is not a string")
    if "id" not in message:
        if params is not None and not isinstance(params, dict):
            raise FrameError(INVALID_PARAMS, "Invalid params: not an object")
        return Frame(NOTIFICATION, data, method, None, params or {}, 0, 0)
    value = message["id"]
    if not _usable_id(value):
        raise FrameError(INVALID_REQUEST, "Invalid request: the id is neither a string nor a finite number")
    start, end = _find_id(data, value)
    if params is None:
        if "params" in message:  # servers in the field die of `"params": null`
            data = jsontext.replace(data, b"{}", "params")
            start, end = _find_id(data, value)
    elif not isinstance(params, dict):
        raise FrameError(INVALID_PARAMS, "Invalid params: not an object", data[start:end])
    return Frame(REQUEST, data, method, value, params or {}, start, end)


def _find_id(data: bytes, value: Any) -> tuple[int, int]:
    if (own_id(value) or 0) >= FIRST_OWN_ID:
        # Given twice, the other one would go on to the server, which then would answer another client's call.
        return jsontext.byte_span(data, "id")
    return jsontext.find_id(data, value)


def _usable_id(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, _ID_TYPES):
        return False
    return isinstance(value, str | int) or value - value == 0  # neither NaN nor infinite


def big_answer(data: Line) -> BigAnswer | None:
    """The id of a large response whose text opens (or ends) as responses do; None: it has to be parsed."""
    head = _BIG_ANSWER.match(data)
    if head is None:
        return None
    end = _BIG_TAIL if head[1] is None else _BIG_END
    tail = end.search(data, max(0, len(data) - _TAIL_REACH))
    if tail is None:
        return None
    found = tail if head[1] is None else head
    return BigAnswer(int(found[1]), head[2] == b"error", *found.span(1))


def answer_id(head: bytes, tail: bytes = b"") -> int | None:
    """The id of a response of which only the first and the last bytes are known."""
    found = _BIG_ANSWER.match(head)
    if found is not None and found[1] is None:
        found = _BIG_TAIL.search(tail, max(0, len(tail) - _TAIL_REACH))
    return int(found[1]) if found else None


def message(data: Line) -> dict[str, Any]:
    """The answer to a request of the relay's own, parsed; see `unusable` for a text that is none."""
    try:
        parsed = jsontext.loads(bytes(data))
    except jsontext.JsonError as problem:
        return unusable(f"its answer is not usable JSON: {problem}")
    return parsed if isinstance(parsed, dict) else {}


def unusable(text: str) -> dict[str, Any]:
    """In place of the answer to a request of the relay's own: why the answer that came cannot be read."""
    return {"unusable": text}


def own_id(value: Any) -> int | None:
    """An id that the relay gave to the server, as it came back; some servers turn numbers into strings."""
    if type(value) is int:
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    return None


def error(raw_id: bytes, code: int, message: str, data: Any = None) -> bytes:
    """An error answer; `raw_id` is the id's JSON text."""
    body: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        body["data"] = data
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (raw_id, jsontext.dumps(body))


def error_of(frame: Frame, raw_id: bytes) -> bytes:
    """The error that an answer carries, as the answer to another request."""
    start, end = jsontext.byte_span(frame.data, "error")
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (raw_id, frame.data[start:end])


def result(raw_id: bytes, raw_result: bytes = b"{}") -> bytes:
    """A result answer."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (raw_id, raw_result)


def request(number: int, method: str, params: dict[str, Any]) -> bytes:
    """A request of the relay's own."""
    return jsontext.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def notification(method: str, params: dict[str, Any] | None = None) -> bytes:
    """A notification of the relay's own."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return jsontext.dumps(message)


# A server-sent event that carries a frame is this, the frame's text, and that.
EVENT_START, EVENT_END = b"event: message\ndata: ", b"\n\n"
COMMENT = b": keep-alive\n\n"


def event_text(text: bytes) -> bytes:
    """A frame's text, or a part of it, as an event may carry it.

    A frame has no line feeds; a carriage return in it is whitespace, but would end the event's line.
    """
    return text.replace(b"\r", b" ") if b"\r" in text else text
