"""Server-sent events: a call's own stream, and the stream of a session."""

import asyncio
import contextlib
from collections.abc import Callable

from mcp_sidecar.core import frames
from mcp_sidecar.session.calls import Call, Outbox, Parts
from mcp_sidecar.web.replies import SSE_HEADERS, Receive, Send, pieces

KEEP_ALIVE_SECONDS = 15.0
_JOIN_BYTES = 65536


async def reply(call: Call, send: Send, abort: Callable[[], None]) -> bool:
    """Stream a call's events and then its answer; False when the client was too slow for its events."""
    await _open(send)
    outbox = call.outbox
    if outbox is not None and not await _forward(outbox, send, abort):
        return False
    if call.answer is None:
        await call.waiter  # no event ever came, and the client takes nothing but a stream
    await _event(send, call.answer or ())
    await send({"type": "http.response.body", "body": b""})
    return True


async def session(outbox: Outbox, receive: Receive, send: Send, abort: Callable[[], None]) -> bool:
    """Stream a session's events until the client goes or the stream closes; False for a client too slow."""
    watcher = asyncio.get_running_loop().create_task(_close_with_client(receive, outbox))
    try:
        await _open(send)
        await send({"type": "http.response.body", "body": frames.COMMENT, "more_body": True})
        if not await _forward(outbox, send, abort):
            return False
        await send({"type": "http.response.body", "body": b""})
        return True
    finally:
        watcher.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watcher


async def _close_with_client(receive: Receive, outbox: Outbox) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    outbox.close()


async def _open(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": SSE_HEADERS})


async def _forward(outbox: Outbox, send: Send, abort: Callable[[], None]) -> bool:
    outbox.on_overflow = abort
    while True:
        parts = outbox.pop()
        if parts is not None:
            await _event(send, parts)
        elif outbox.overflown:
            abort()
            return False
        elif outbox.closed:
            return True
        elif not await outbox.wait(KEEP_ALIVE_SECONDS):
            await _event(send, ())


async def _event(send: Send, parts: Parts) -> None:
    """Send one event; without parts a comment, which keeps the connection open and is seen by nobody."""
    if not parts:
        await send({"type": "http.response.body", "body": frames.COMMENT, "more_body": True})
        return
    if sum(map(len, parts)) <= _JOIN_BYTES:
        body = b"".join((frames.EVENT_START, frames.event_text(b"".join(parts)), frames.EVENT_END))
        await send({"type": "http.response.body", "body": body, "more_body": True})
        return
    await send({"type": "http.response.body", "body": frames.EVENT_START, "more_body": True})
    for piece in pieces(parts):
        body = frames.event_text(bytes(piece))
        await send({"type": "http.response.body", "body": body, "more_body": True})
    await send({"type": "http.response.body", "body": frames.EVENT_END, "more_body": True})
