"""Token issuers: what they tell of themselves, and their keys. By https alone, without any credentials."""

import asyncio
import ssl
from http import HTTPStatus
from typing import Any, Final

import aiohttp

from mcp_operator.adapters import body, outage
from mcp_operator.adapters.errors import IssuerError, NoObjectError

FETCH_SECONDS: Final = 10.0
MAX_DOCUMENT: Final = 512 * 1024
MAX_CONNECTIONS: Final = 16
_HEADERS: Final = {"Accept": "application/json, application/jwk-set+json"}


class Issuers:
    """The client of all issuers."""

    def __init__(self, ca_file: str = "") -> None:
        """`ca_file` has more authorities to believe. Raises OSError if it cannot be read."""
        self._trusted = ssl.create_default_context()
        if ca_file:
            self._trusted.load_verify_locations(ca_file)
        self._client: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.close()

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
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise IssuerError(f"it does not answer: {outage.words(error)}") from error
        try:
            return body.json_object(content)
        except NoObjectError as error:
            raise IssuerError(str(error)) from error

    def _session(self) -> aiohttp.ClientSession:
        """Made when the first issuer is asked: most operators never ask. The environment names the proxy."""
        if self._client is None:
            connector = aiohttp.TCPConnector(ssl=self._trusted, limit=MAX_CONNECTIONS, force_close=True)
            limit = aiohttp.ClientTimeout(FETCH_SECONDS)
            self._client = aiohttp.ClientSession(
                connector=connector, timeout=limit, trust_env=True, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._client

    async def _content(self, url: str) -> bytes:
        # No redirects: who is trusted with the keys is who the spec names.
        async with self._session().get(url, headers=_HEADERS, allow_redirects=False) as answer:
            if answer.status != HTTPStatus.OK:
                absent = answer.status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}
                raise IssuerError(f"it answers HTTP {answer.status}", absent=absent)
            found = await body.bounded(answer, MAX_DOCUMENT)
        if found is None:
            raise IssuerError(f"it sends more than {MAX_DOCUMENT} bytes")
        return found
