"""The relays: long-poll of their status, and the order to reconnect, over httpx."""

import asyncio
import socket
import ssl
from dataclasses import dataclass
from typing import Any, Final, Self

import httpx
import pydantic

from mcp_operator.adapters.errors import UnreachableError
from mcp_relay_api import paths
from mcp_relay_api.status import RelayStatus

CONNECT_SECONDS: Final = 2.0
ANSWER_SECONDS: Final = 5.0
MAX_DOCUMENT: Final = 4 * 1024 * 1024

# A node or network that vanishes says nothing; the kernel asks instead, so that a poll ends within 5 s.
_KEEPALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 2),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)

# Relays are spoken to in plain HTTP; without this every client would load the system's certificates.
_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@dataclass(frozen=True)
class Endpoint:
    """Where one relay's admin port is, and what opens it."""

    host: str
    token: str
    port: int = paths.ADMIN_PORT

    def url(self, path: str) -> str:
        """URL of a path at the admin port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{path}"

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every request."""
        return {"Authorization": f"Bearer {self.token}", "Accept-Encoding": "identity"}


class Relay:
    """The client of one relay, with connections of its own.

    One pool for all would be searched from end to end by httpx with every request: with 1,000 waiting
    polls that took two thirds of a core, measured; pools of their own take 4 MB.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        limits = httpx.Limits(max_connections=2, max_keepalive_connections=1, keepalive_expiry=90)
        transport = httpx.AsyncHTTPTransport(
            verify=_TLS, trust_env=False, limits=limits, socket_options=_KEEPALIVE
        )
        self._client = httpx.AsyncClient(transport=transport, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def status(self, known: RelayStatus | None, wait: float) -> RelayStatus:
        """The relay's report: at once if not the known one, else when it changes or after `wait` seconds.

        Raises:
            UnreachableError: no answer, or none that can be used.

        """
        query: dict[str, Any] = {}
        if known is not None:
            query = {"after": known.revision, "instance": known.instance, "wait": wait}
        patience = httpx.Timeout(ANSWER_SECONDS + (wait if known is not None else 0), connect=CONNECT_SECONDS)
        content = await self._send("GET", paths.STATUS_PATH, patience, query)
        try:
            return RelayStatus.model_validate_json(content)
        except pydantic.ValidationError as error:
            raise UnreachableError(f"its report cannot be read: {_first(error)}") from error

    async def reconnect(self) -> None:
        """Tell the relay to open its connection to the launcher anew.

        Raises:
            UnreachableError: no answer, or a refusal.

        """
        await self._send("POST", paths.RECONNECT_PATH, httpx.Timeout(ANSWER_SECONDS), {})

    async def _send(self, method: str, path: str, patience: httpx.Timeout, query: dict[str, Any]) -> bytes:
        """The body of a successful answer; the whole of it must be there within the time for its begin."""
        url, headers = self.endpoint.url(path), self.endpoint.headers
        try:
            async with (
                asyncio.timeout(patience.read),
                self._client.stream(method, url, params=query, headers=headers, timeout=patience) as answer,
            ):
                if not answer.is_success:
                    raise UnreachableError(f"HTTP {answer.status_code}")
                return await _content(answer)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
            raise UnreachableError(str(error) or type(error).__name__) from error


async def _content(answer: httpx.Response) -> bytes:
    """The body as it comes, read no further than the limit: whoever listens there may send without end."""
    found = bytearray()
    async for chunk in answer.aiter_raw():
        found += chunk
        if len(found) > MAX_DOCUMENT:
            raise UnreachableError(f"its report has more than {MAX_DOCUMENT} bytes")
    return bytes(found)


def _first(error: pydantic.ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in found["loc"])
    return f"{where}: {found['msg']}" if where else found["msg"]
