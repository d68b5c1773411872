"""The body of an answer of somebody who is not trusted: read as it comes, no further than a limit."""

import aiohttp


async def bounded(answer: aiohttp.ClientResponse, limit: int) -> bytes | None:
    """All of it; None if it has more than `limit` bytes, the rest of which is not read."""
    found = bytearray()
    async for chunk in answer.content.iter_any():
        found += chunk
        if len(found) > limit:
            return None
    return bytes(found)
