"""The body of an answer of somebody who is not trusted: read as it comes, no further than a limit."""

import json
from typing import Any

import aiohttp

from mcp_operator.adapters.errors import NoObjectError


async def bounded(answer: aiohttp.ClientResponse, limit: int) -> bytes | None:
    """All of it; None if it has more than `limit` bytes, the rest of which is not read."""
    found = bytearray()
    async for chunk in answer.content.iter_any():
        found += chunk
        if len(found) > limit:
            return None
    return bytes(found)


def json_object(content: bytes) -> dict[str, Any]:
    """The JSON object that a body is.

    Raises:
        NoObjectError: it is none; the message says nothing of what is there instead.

    """
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise NoObjectError("it sends something that is no JSON") from error
    if not isinstance(found, dict):
        raise NoObjectError("it sends JSON that is no object")
    return found
