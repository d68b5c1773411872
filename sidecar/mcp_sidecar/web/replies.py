"""Replies over ASGI, in as few messages as possible."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

from mcp_sidecar.core import frames
from mcp_sidecar.session.calls import Parts

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = Mapping[bytes, bytes]

JSON_HEADER = (b"content-type", b"application/json")
SSE_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),  # tells nginx not to hold events back
]
ABORT = "mcp_sidecar.abort"
"""Name of the scope's extension that cuts the connection."""
_PIECE_BYTES = 256 * 1024


async def plain(
    send: Send, status: int, body: bytes = b"", headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    """A short reply; a body is JSON."""
    start = [(b"content-length", b"%d" % len(body)), *headers]
    if body:
        start.append(JSON_HEADER)
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body})


async def refuse(
    send: Send,
    status: int,
    message: str,
    code: int = frames.SERVER_ERROR,
    headers: Sequence[tuple[bytes, bytes]] = (),
) -> None:
    """An HTTP error whose body is a JSON-RPC error without id."""
    await plain(send, status, frames.error(frames.NULL, code, message), headers)


async def answer(send: Send, parts: Parts) -> None:
    """A JSON-RPC answer; a large one goes out in pieces, as fast as the client takes them."""
    length = sum(map(len, parts))
    headers = [JSON_HEADER, (b"content-length", b"%d" % length)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if len(parts) == 1:
        await send({"type": "http.response.body", "body": parts[0]})
        return
    for piece in pieces(parts):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def pieces(parts: Parts) -> Iterator[bytes | memoryview]:
    """The same bytes, cut so that nobody else waits long while they are sent."""
    for part in parts:
        for start in range(0, len(part), _PIECE_BYTES):
            yield part[start : start + _PIECE_BYTES]


async def read_body(receive: Receive, headers: Headers, limit: int) -> bytes | None:
    """The request's body; None when it is larger than `limit` bytes.

    Raises:
        ConnectionResetError: the client went away before it was complete.

    """
    length = headers.get(b"content-length")
    if (length is not None and len(length) > 18) or (length is not None and int(length) > limit):
        return None
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        return bytes(message["body"])
    parts, size = [], 0
    while True:
        if message["type"] != "http.request":
            raise ConnectionResetError
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            return None
        if not message.get("more_body"):
            return b"".join(parts)
        message = await receive()
