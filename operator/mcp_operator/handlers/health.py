"""The operator's own probes.

Alive: neither blind nor stuck; an API server that is away is no cause to restart. Ready: it has learnt what
there is and serves it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

logger = logging.getLogger(__name__)

ALIVE_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"
REQUEST_SECONDS: Final = 5.0
# A reconcile is a handful of requests, each bounded; one that takes this long hangs.
STUCK_SECONDS: Final = 180.0

Check = Callable[[], str]


@asynccontextmanager
async def served(port: int, trouble: Check, waiting: Check) -> AsyncIterator[None]:
    """Answer probes on all addresses: 200 while a check returns "", else 503 with its text.

    `trouble` is asked by `GET /healthz`, and `GET /readyz` asks `waiting` as well.
    """
    checks = {ALIVE_PATH: trouble, READY_PATH: lambda: waiting() or trouble()}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                line = await reader.readline()
                writer.write(_response(line.decode("latin-1").split(), checks))
                await writer.drain()
        except (OSError, TimeoutError, ValueError) as error:
            logger.debug("a probe went wrong: %s", error)
        finally:
            writer.close()

    server = await asyncio.start_server(answer, host=None, port=port)
    try:
        yield
    finally:
        server.close()


def _response(request: list[str], checks: Mapping[str, Check]) -> bytes:
    check = checks.get(request[1].partition("?")[0]) if len(request) > 1 else None
    if check is None:
        return _http("404 Not Found", "no such page")
    told = check()
    return _http("503 Service Unavailable", told) if told else _http("200 OK", "ok")


def _http(status: str, body: str) -> bytes:
    content = f"{body}\n".encode()
    fields = ("Content-Type: text/plain", f"Content-Length: {len(content)}", "Connection: close", "", "")
    return "\r\n".join((f"HTTP/1.1 {status}", *fields)).encode() + content
