"""Server-sent events: a call's own stream, and the stream of a session."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mcp_sidecar.core import frames
from mcp_sidecar.core.httptext import Head
from mcp_sidecar.core.modern import methods
from mcp_sidecar.session.calls import Call, Outbox, Parts
from mcp_sidecar.web.exchange import Exchange
from mcp_sidecar.web.replies import pieces

KEEP_ALIVE_SECONDS = 15.0
MAX_STREAM_SECONDS = 86_400.0
"""What a token that is valid for longer opens at once; a client then opens the stream again."""
_JOIN_BYTES = 65536
_FIELDS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),  # tells nginx not to hold events back
]


async def reply(call: Call, exchange: Exchange) -> bool:
    """Stream a call's events and then its answer; False when the client was too slow for its events.

    The call has an event to send or its answer.
    """
    exchange.open(_FIELDS)
    # A call ends in its time; what has no end must not outlive the client's token.
    with _until_expired(exchange.head, exchange.abort, when=call.method == methods.LISTEN):
        if call.outbox is not None and not await _forward(call.outbox, exchange):
            return False
    await _event(exchange, call.answer or ())
    exchange.end()
    return True


async def session(outbox: Outbox, exchange: Exchange, first: bytes = frames.COMMENT) -> bool:
    """Stream a session's events until the client goes or the stream closes; False for a client too slow.

    `first` opens the stream.
    """
    exchange.on_gone = outbox.close
    if exchange.gone:
        return True
    exchange.open(_FIELDS)
    exchange.send(first)
    with _until_expired(exchange.head, outbox.close):
        if not await _forward(outbox, exchange):
            return False
    exchange.end()
    return True


@contextmanager
def _until_expired(head: Head, end: Callable[[], None], *, when: bool = True) -> Iterator[None]:
    """Call `end` if the client's token expires meanwhile."""
    if not (when and head.expires):
        yield
        return
    seconds = min(max(0.0, head.expires - time.time()), MAX_STREAM_SECONDS)
    timer = asyncio.get_running_loop().call_later(seconds, end)
    try:
        yield
    finally:
        timer.cancel()


async def _forward(outbox: Outbox, exchange: Exchange) -> bool:
    outbox.on_overflow = exchange.abort
    while True:
        parts = outbox.pop()
        if parts is not None:
            await _event(exchange, parts)
        elif outbox.overflown:
            exchange.abort()
            return False
        elif outbox.closed:
            return True
        elif not await outbox.wait(KEEP_ALIVE_SECONDS):
            await _event(exchange, ())


async def _event(exchange: Exchange, parts: Parts) -> None:
    """Send one event; without parts a comment, which keeps the connection open and is seen by nobody."""
    if not parts:
        exchange.send(frames.COMMENT)
    elif sum(map(len, parts)) <= _JOIN_BYTES:
        exchange.send(b"".join((frames.EVENT_START, frames.event_text(b"".join(parts)), frames.EVENT_END)))
    else:
        exchange.send(frames.EVENT_START)
        for piece in pieces(parts):
            exchange.send(frames.event_text(bytes(piece)))
            await exchange.drained()
        exchange.send(frames.EVENT_END)
    await exchange.drained()
