"""Registries: what an image starts, read over the OCI distribution API without pulling the image.

A redirect to another host gets no credentials: aiohttp leaves them out by itself.
"""

import asyncio
import hashlib
import platform
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import aiohttp
from multidict import CIMultiDictProxy

from mcp_operator.adapters import body, outage
from mcp_operator.adapters.errors import NoObjectError, RegistryError
from mcp_operator.core.oci import challenge, image
from mcp_operator.core.oci.challenge import Challenge
from mcp_operator.core.oci.credentials import Credentials
from mcp_operator.core.oci.image import DocumentError, EntryPoint
from mcp_operator.core.oci.reference import DOCKER_HUB, Reference

LOOKUP_SECONDS: Final = 15.0
MAX_DOCUMENT: Final = 4 * 1024 * 1024
MAX_REDIRECTS: Final = 3
MAX_CONNECTIONS: Final = 16
MAX_KNOWN: Final = 512
_HUB: Final = "registry-1.docker.io"
_ACCEPT: Final = ", ".join((*image.INDEXES, *image.MANIFESTS))
# As images name them, by what the kernel calls them.
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


_Answer = tuple[int, CIMultiDictProxy[str], bytes]
"""Status, headers, content."""


@dataclass(frozen=True)
class Document:
    """An answer of a registry."""

    content: dict[str, Any]
    media_type: str


class Registries:
    """The client of all registries."""

    def __init__(self, insecure: Iterable[str] = (), ca_file: str = "") -> None:
        """Hosts in `insecure` are spoken to without TLS; `ca_file` has more authorities to believe."""
        self._insecure = frozenset(insecure)
        self._trusted = ssl.create_default_context()
        if ca_file:
            self._trusted.load_verify_locations(ca_file)
        self._client: aiohttp.ClientSession | None = None
        self._known: dict[str, EntryPoint] = {}

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.close()

    async def entry_point(self, reference: Reference, credentials: Sequence[Credentials]) -> EntryPoint:
        """What an image starts; each of the credentials is tried, then none.

        Raises:
            RegistryError: it cannot be found out.

        """
        refusal = None
        for candidate in (*credentials, None):
            try:
                async with asyncio.timeout(LOOKUP_SECONDS):
                    return await self._lookup(
                        _Visit(self._session(), self._base(reference), candidate), reference
                    )
            except RegistryError as error:
                if not error.denied:
                    raise
                refusal = refusal or error
            except (DocumentError, NoObjectError) as error:
                raise RegistryError(str(error)) from error
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                text = f"{reference.host} does not answer: {outage.words(error)}"
                raise RegistryError(text, passing=True) from error
        assert refusal is not None  # noqa: S101 - the loop ends early, or with one
        raise refusal

    def _session(self) -> aiohttp.ClientSession:
        """Made when the first image is asked for: most operators never ask."""
        if self._client is None:
            # Lookups are rare: no connection is worth keeping. The environment names the proxy, if any.
            connector = aiohttp.TCPConnector(ssl=self._trusted, limit=MAX_CONNECTIONS, force_close=True)
            limit = aiohttp.ClientTimeout(LOOKUP_SECONDS)
            self._client = aiohttp.ClientSession(connector=connector, timeout=limit, trust_env=True)
        return self._client

    def _base(self, reference: Reference) -> str:
        host = _HUB if reference.host == DOCKER_HUB else reference.host
        scheme = "http" if reference.host in self._insecure else "https"
        return f"{scheme}://{host}/v2/{reference.repository}"

    async def _lookup(self, visit: "_Visit", reference: Reference) -> EntryPoint:
        # Asked each time, since it is the answer to whether these credentials may see the image at all.
        found = await visit.get(f"manifests/{reference.version}", reference.digest)
        if image.is_index(found.content, found.media_type):
            digest = image.variant(found.content, _architecture())
            found = await visit.get(f"manifests/{digest}", digest)
        digest = image.config_digest(found.content)
        if digest not in self._known:
            config = await visit.get(f"blobs/{digest}", digest)
            while len(self._known) >= MAX_KNOWN:
                self._known.pop(next(iter(self._known)))
            self._known[digest] = image.entry_point(config.content)
        return self._known[digest]


class _Visit:
    """The requests of one lookup, with one set of credentials."""

    def __init__(self, client: aiohttp.ClientSession, base: str, credentials: Credentials | None) -> None:
        self._client = client
        self._base = base
        self._credentials = credentials
        self._authorization = ""

    async def get(self, path: str, digest: str) -> Document:
        """A document; with a digest (not empty) it must be the very one."""
        status, answer, content = await self._send(path)
        if status == HTTPStatus.UNAUTHORIZED and not self._authorization:
            self._authorization = await self._answer(challenge.parse(answer.getall("www-authenticate", [])))
            status, answer, content = await self._send(path)
        if status != HTTPStatus.OK:
            raise _error(status, path)
        if digest and f"sha256:{hashlib.sha256(content).hexdigest()}" != digest:
            raise DocumentError(f"what the registry sends as {digest} has another digest")
        return Document(body.json_object(content), answer.get("content-type", ""))

    async def _send(self, path: str) -> _Answer:
        headers = {"Accept": _ACCEPT if path.startswith("manifests/") else "*/*"}
        if self._authorization:
            headers["Authorization"] = self._authorization
        return await self._content(f"{self._base}/{path}", headers, {})

    async def _answer(self, challenges: Sequence[Challenge]) -> str:
        """What to send as Authorization."""
        for asked in challenges:
            if asked.scheme == "bearer" and "realm" in asked.parameters:
                return await self._token(asked)
            if asked.scheme == "basic" and self._credentials is not None:
                return self._credentials.basic
        raise RegistryError("it wants credentials", denied=True)

    async def _token(self, asked: Challenge) -> str:
        query = {name: text for name, text in asked.parameters.items() if name in {"service", "scope"}}
        headers = {"Authorization": self._credentials.basic} if self._credentials else {}
        status, _, content = await self._content(asked.parameters["realm"], headers, query)
        if status != HTTPStatus.OK:
            raise _error(status, "token")
        found = body.json_object(content)
        token = found.get("token") or found.get("access_token")
        if not isinstance(token, str):
            raise RegistryError("its token service sends no token")
        return f"Bearer {token}"

    async def _content(self, url: str, headers: dict[str, str], query: dict[str, str]) -> _Answer:
        async with self._client.get(
            url, headers=headers, params=query, max_redirects=MAX_REDIRECTS + 1
        ) as answer:
            found = await body.bounded(answer, MAX_DOCUMENT)
        if found is None:
            raise RegistryError(f"it sends a document of more than {MAX_DOCUMENT} bytes")
        return answer.status, answer.headers, found


def _error(status: int, what: str) -> RegistryError:
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return RegistryError("it refuses access", denied=True)
    if status == HTTPStatus.NOT_FOUND:
        return RegistryError("it does not have the image", denied=True)
    passing = status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return RegistryError(f"it answers HTTP {status} to {what.partition('/')[0]}", passing=passing)


def _architecture() -> str:
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)
