"""An MCP session with a server of the cluster, through a port-forward to its pod. The only user of `mcp`."""

import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import httpx2
import pydantic
from mcp import MCPError
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from mcp_operator.core.api import AuthType
from mcp_operator.manifests import names
from mcp_relay_api import paths
from mcpsrv.cluster.forward import forwarded
from mcpsrv.cluster.kinds import SECRETS, SERVERS
from mcpsrv.cluster.kube import Kube
from mcpsrv.core import state
from mcpsrv.core.errors import CliError, NotFoundError

Json = dict[str, Any]
Progress = Callable[[float, float | None, str | None], Awaitable[None]]

CALL_SECONDS: Final = 3600.0  # the server's own limit is in its spec; this only ends what nobody waits for
_OPEN_SECONDS: Final = 30.0
_UNAUTHORIZED: Final = 401
_FORESEEN: Final = (MCPError, httpx2.HTTPError, TimeoutError, pydantic.ValidationError, RuntimeError)


class McpSession:
    """An initialised session. Tools and results are plain dictionaries, as MCP writes them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def tools(self) -> list[Json]:
        """All tools, with their input schemas."""
        found: list[Json] = []
        cursor: str | None = None
        while True:
            page = await self._client.list_tools(cursor=cursor)
            found += [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in page.tools]
            cursor = page.next_cursor
            if not cursor:
                return found

    async def call(self, tool: str, arguments: Json, report: Progress | None = None) -> Json:
        """The result of one call; `isError` in it tells that the tool failed."""

        async def told(progress: float, total: float | None, message: str | None) -> None:
            if report:
                await report(progress, total, message)

        result = await self._client.call_tool(tool, arguments, progress_callback=told)
        dumped: Json = result.model_dump(by_alias=True, exclude_none=True, mode="json")
        return dumped


async def token(kube: Kube, server: Json) -> str:
    """The bearer token of an MCPServer; "" if it asks for none.

    Raises:
        CliError: it asks for tokens of another issuer.
        NotFoundError: the Secret, or its key, does not exist.
        AccessError: we may not read it.

    """
    auth = server["spec"].get("auth") or {}
    kind = auth.get("type", AuthType.BEARER)
    if kind == AuthType.NONE:
        return ""
    if kind != AuthType.BEARER:
        raise CliError(f"spec.auth.type is {kind}: pass a token of its issuer with --token")
    own = (auth.get("bearer") or {}).get("secretRef") or {}
    name = own.get("name") or names.service(server["metadata"]["name"])
    key = own.get("key") or paths.TOKEN_FILE
    data = (await kube.get(SECRETS, name)).get("data") or {}
    if key not in data:
        raise NotFoundError(
            f"the Secret {name} has no key {key}: add it, or correct spec.auth.bearer.secretRef"
        )
    # While it is rotated there are several, one a line; the newest stands first.
    return base64.b64decode(data[key]).decode().strip().partition("\n")[0].strip()


@asynccontextmanager
async def opened(kube: Kube, server: Json, given_token: str = "") -> AsyncIterator[McpSession]:
    """A session with a Ready MCPServer.

    Raises:
        CliError: it is not Ready, or a call fails; the message says how.

    """
    name = server["metadata"]["name"]
    require_ready(server)
    sent = given_token or await token(kube, server)
    headers = {"Authorization": f"Bearer {sent}"} if sent else {}
    complaints: list[str] = []

    async def pod() -> str:
        return state.pod_name(server)

    async def heard(response: httpx2.Response) -> None:
        # The library tells that there was an error, but not which.
        if response.status_code == _UNAUTHORIZED:
            complaints.append(denied(server, given=bool(given_token)))

    with _told(name, complaints):
        async with forwarded(kube, pod, paths.MCP_PORT, failed=complaints.append) as port:
            url = f"http://127.0.0.1:{port}{paths.MCP_PATH}"
            timeout = httpx2.Timeout(_OPEN_SECONDS, read=CALL_SECONDS)
            async with (
                httpx2.AsyncClient(
                    headers=headers, timeout=timeout, trust_env=False, event_hooks={"response": [heard]}
                ) as http,
                Client(streamable_http_client(url, http_client=http), mode="legacy") as client,
            ):
                yield McpSession(client)


def denied(server: Json, *, given: bool) -> str:
    """What to do when the server answers 401; `given`: the token came from --token."""
    auth = server["spec"].get("auth") or {}
    jwt = auth.get("jwt") or {}
    if auth.get("type") == AuthType.JWT:
        audiences = " or ".join(jwt.get("audiences") or ())
        subjects = ", ".join(jwt.get("subjects") or ())
        whose = f" for a subject of spec.auth.jwt.subjects ({subjects})" if subjects else ""
        wanted = f"by {jwt.get('issuer')} for the audience {audiences}{whose}"
        return (
            f"the token is refused (401): pass one with --token that was issued {wanted} and has not expired"
        )
    if given:
        return (
            "the token of --token (or MCPSRV_TOKEN) is refused (401): without it that of the Secret is sent"
        )
    restart = f"mcpsrv restart {server['metadata']['name']}"
    return (
        f"the token of the Secret is refused (401): a new one is valid after two minutes, or after {restart}"
    )


def require_ready(server: Json) -> None:
    """Raises CliError, with what is the matter, for a server that cannot be called."""
    if state.is_ready(server):
        return
    name, now = server["metadata"]["name"], state.situation(server)
    raise CliError(f"{name} is not Ready ({now.stage}): {now.message}; see: mcpsrv why {name}")


async def current(kube: Kube, name: str) -> Json:
    """The MCPServer as it is now."""
    return await kube.get(SERVERS, name)


@contextmanager
def _told(name: str, complaints: list[str]) -> Iterator[None]:
    """Errors of the session as a CliError; those of the connection below it say more."""
    try:
        yield
    except BaseExceptionGroup as group:
        leaves = list(_leaves(group))
        if not all(isinstance(leaf, (CliError, *_FORESEEN)) for leaf in leaves):
            raise
        ours = next((leaf for leaf in leaves if isinstance(leaf, CliError)), None)
        raise (ours or _failure(name, leaves[0], complaints)) from group
    except _FORESEEN as error:
        raise _failure(name, error, complaints) from error


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    else:
        yield error


def _failure(name: str, error: BaseException, complaints: list[str]) -> CliError:
    said = complaints[0] if complaints else str(error) or type(error).__name__
    return CliError(f"{name}: {said}")
