"""Replies that both directions of a call's way share."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from mcp_sidecar.core.httptext import JSON_FIELD, Reply
from mcp_sidecar.session.calls import Parts, RefusedError
from mcp_sidecar.web import admission
from mcp_sidecar.web.exchange import Data, Exchange

_PIECE_BYTES = 256 * 1024


def refuse(exchange: Exchange, refusal: RefusedError, raw_id: bytes) -> None:
    """Reply with an error of the relay's own."""
    admission.refused(exchange, refusal)
    fields = [(b"retry-after", b"%d" % refusal.retry_after)] if refusal.retry_after else []
    exchange.reply(Reply(refusal.status, refusal.body(raw_id), fields))


def answer(exchange: Exchange, parts: Parts) -> None:
    """Reply with a JSON-RPC answer; a large one goes out in pieces, as fast as the client takes them."""
    if len(parts) == 1:
        exchange.answer(bytes(parts[0]))
    else:
        exchange.spawn(_large(exchange, parts))


async def _large(exchange: Exchange, parts: Parts) -> None:
    exchange.open([JSON_FIELD], sum(map(len, parts)))
    for piece in pieces(parts):
        exchange.send(piece)
        await exchange.drained()
        if exchange.gone:
            return
    exchange.end()


def pieces(parts: Parts) -> Iterator[Data]:
    """The same bytes, cut so that nobody else waits long while they are sent."""
    for part in parts:
        for start in range(0, len(part), _PIECE_BYTES):
            yield part[start : start + _PIECE_BYTES]


def _task_for(exchange: Exchange) -> asyncio.Task[object]:
    task = asyncio.current_task()
    if exchange.gone or task is None:
        raise asyncio.CancelledError
    return task


def _cancel(task: asyncio.Task[object]) -> None:
    task.cancel()


@contextmanager
def cancelled_when_gone(exchange: Exchange) -> Iterator[None]:
    """Cancel the task that runs this when the client goes meanwhile; the request then counts as cancelled.

    Raises:
        CancelledError: it is gone.

    """
    try:
        exchange.on_gone = partial(_cancel, _task_for(exchange))
        yield
    except asyncio.CancelledError:
        admission.end(exchange, "cancelled")
        raise
    finally:
        exchange.on_gone = None
