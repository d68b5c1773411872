"""A few pages over plain HTTP: the probes, and the metrics."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

logger = logging.getLogger(__name__)

REQUEST_SECONDS: Final = 5.0
TEXT: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Page:
    """One answer: `status` is code and words, as in `200 OK`."""

    status: str
    body: bytes
    content_type: str = TEXT


NOT_FOUND: Final = Page("404 Not Found", b"no such page\n")


@asynccontextmanager
async def served(port: int, pages: Mapping[str, Callable[[], Page]]) -> AsyncIterator[None]:
    """Answer on all addresses; `pages` by their path. Any other path is answered with 404."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                line = await reader.readline()
                writer.write(_response(line.decode("latin-1").split(), pages))
                await writer.drain()
        except (OSError, TimeoutError, ValueError) as error:
            logger.debug("a request went wrong: %s", error)
        finally:
            writer.close()

    server = await asyncio.start_server(answer, host=None, port=port)
    try:
        yield
    finally:
        server.close()


def _response(request: list[str], pages: Mapping[str, Callable[[], Page]]) -> bytes:
    make = pages.get(request[1].partition("?")[0]) if len(request) > 1 else None
    page = make() if make is not None else NOT_FOUND
    fields = (f"Content-Type: {page.content_type}", f"Content-Length: {len(page.body)}", "Connection: close")
    return "\r\n".join((f"HTTP/1.1 {page.status}", *fields, "", "")).encode() + page.body
