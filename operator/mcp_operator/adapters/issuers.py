"""Token issuers: what they tell of themselves, and their keys. By https alone, without any credentials."""

import asyncio
import json
import ssl
from typing import Any, Final

import httpx

from mcp_operator.adapters.errors import IssuerError

FETCH_SECONDS: Final = 10.0
MAX_DOCUMENT: Final = 512 * 1024


class Issuers:
    """The client of all issuers."""

    def __init__(self, ca_file: str = "") -> None:
        """`ca_file` has more authorities to believe. Raises OSError if it cannot be read."""
        trusted = ssl.create_default_context()
        if ca_file:
            trusted.load_verify_locations(ca_file)
        # No redirects: who is trusted with the keys is who the spec names.
        self._client = httpx.AsyncClient(
            verify=trusted,
            timeout=FETCH_SECONDS,
            follow_redirects=False,
            limits=httpx.Limits(max_connections=16, max_keepalive_connections=0),
            headers={"Accept": "application/json, application/jwk-set+json"},
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def document(self, url: str) -> dict[str, Any]:
        """The JSON object at an https URL.

        Raises:
            IssuerError: there is none; the message says nothing of what is there instead.

        """
        if not url.startswith("https://"):
            raise IssuerError("its URL is not https")
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                content = await self._content(url)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, TimeoutError) as error:
            raise IssuerError(f"it does not answer: {str(error) or type(error).__name__}") from error
        try:
            found = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise IssuerError("it sends something that is no JSON") from error
        if not isinstance(found, dict):
            raise IssuerError("it sends JSON that is no object")
        return found

    async def _content(self, url: str) -> bytes:
        found = bytearray()
        async with self._client.stream("GET", url) as answer:
            if answer.status_code != httpx.codes.OK:
                absent = answer.status_code in {httpx.codes.NOT_FOUND, httpx.codes.GONE}
                raise IssuerError(f"it answers HTTP {answer.status_code}", absent=absent)
            async for chunk in answer.aiter_bytes():
                found += chunk
                if len(found) > MAX_DOCUMENT:
                    raise IssuerError(f"it sends more than {MAX_DOCUMENT} bytes")
        return bytes(found)
