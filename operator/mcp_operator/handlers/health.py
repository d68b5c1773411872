"""The liveness endpoint: fails when the operator is blind or stuck, not when the API server is away."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

logger = logging.getLogger(__name__)

PATH: Final = "/healthz"
REQUEST_SECONDS: Final = 5.0
# A reconcile is a handful of requests, each bounded; one that takes this long hangs.
STUCK_SECONDS: Final = 180.0

Check = Callable[[], str]


@asynccontextmanager
async def served(port: int, check: Check) -> AsyncIterator[None]:
    """Answer `GET /healthz` on all addresses: 200 while `check` returns "", else 503 with its text."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                line = await reader.readline()
                writer.write(_response(line.decode("latin-1").split(), check))
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


def _response(request: list[str], check: Check) -> bytes:
    if len(request) < 2 or request[1].partition("?")[0] != PATH:
        return _http("404 Not Found", "no such page")
    trouble = check()
    return _http("503 Service Unavailable", trouble) if trouble else _http("200 OK", "ok")


def _http(status: str, body: str) -> bytes:
    content = f"{body}\n".encode()
    fields = ("Content-Type: text/plain", f"Content-Length: {len(content)}", "Connection: close", "", "")
    return "\r\n".join((f"HTTP/1.1 {status}", *fields)).encode() + content
