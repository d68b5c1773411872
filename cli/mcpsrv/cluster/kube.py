"""One connection pool to the API server. Objects go in and out as plain dictionaries.

Every error that comes out is a CliError: it names the cure and carries the exit code.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import aiohttp
from kubernetes_asyncio import client

from mcpsrv.cluster import access
from mcpsrv.cluster.access import Where
from mcpsrv.cluster.kinds import SERVERS, Kind
from mcpsrv.core import toolview
from mcpsrv.core.errors import AccessError, CliError, NotFoundError, UsageError

Json = dict[str, Any]
Query = Iterable[tuple[str, str]]

FIELD_MANAGER: Final = "mcpsrv"
TIMEOUT_SECONDS: Final = 15.0
_WATCH_SECONDS: Final = 300
_RETRY_SECONDS: Final = 1.0
_NETWORK: Final = (aiohttp.ClientError, TimeoutError, OSError, ssl.SSLError)
_GONE: Final = 410


class ConflictError(CliError):
    """The object exists already, or somebody else owns a field of it."""


@dataclass(frozen=True)
class Change:
    """An object as a watch delivered it; `gone` when it was deleted."""

    object: Json
    gone: bool = False


class Kube:
    """The API server, as the user of the kubeconfig sees it."""

    def __init__(self, configuration: client.Configuration, namespace: str) -> None:
        self.namespace = namespace
        self._configuration = configuration
        self._api = client.ApiClient(configuration)

    async def close(self) -> None:
        """Close all connections."""
        await self._api.close()

    async def get(self, kind: Kind, name: str) -> Json:
        """One object. Raises NotFoundError, for an MCPServer with the names that come close."""
        try:
            return await self._json("GET", kind.path(self.namespace, name))
        except NotFoundError as error:
            if kind is not SERVERS:
                raise
            known = [one["metadata"]["name"] for one in await self.list(SERVERS)]
            near = toolview.close(name, known, "`mcpsrv list -A` shows all")
            raise NotFoundError(
                f"there is no MCPServer {name} in namespace {self.namespace}: {near}"
            ) from error

    async def find(self, kind: Kind, name: str) -> Json | None:
        """One object; None if there is none."""
        try:
            return await self._json("GET", kind.path(self.namespace, name))
        except NotFoundError:
            return None

    async def list(self, kind: Kind, *, everywhere: bool = False, query: Query = ()) -> list[Json]:
        """All objects of a kind, of the namespace or of all namespaces."""
        found = await self._json("GET", kind.path("" if everywhere else self.namespace), query)
        return list(found.get("items") or ())

    async def apply(self, kind: Kind, body: Json) -> Json:
        """Server-side apply with strict validation. Raises ConflictError where somebody else owns a field."""
        query = [("fieldManager", FIELD_MANAGER), ("fieldValidation", "Strict")]
        path = kind.path(self.namespace, body["metadata"]["name"])
        return await self._json("PATCH", path, query, body, "application/apply-patch+yaml")

    async def create(self, kind: Kind, body: Json) -> Json:
        """Create one object with strict validation. Raises ConflictError if the name is taken."""
        query = [("fieldManager", FIELD_MANAGER), ("fieldValidation", "Strict")]
        return await self._json("POST", kind.path(self.namespace), query, body)

    async def merge(self, kind: Kind, name: str, patch: Json) -> Json:
        """Merge into one object."""
        query = [("fieldManager", FIELD_MANAGER)]
        content = "application/merge-patch+json"
        return await self._json("PATCH", kind.path(self.namespace, name), query, patch, content)

    async def delete(self, kind: Kind, name: str) -> None:
        """Ask for deletion; an object that is gone is no error."""
        try:
            body = {"propagationPolicy": "Background"}
            await self._json("DELETE", kind.path(self.namespace, name), body=body)
        except NotFoundError:
            return

    async def changes(self, kind: Kind, query: Query = (), name: str = "") -> AsyncGenerator[Change, None]:
        """Objects as they are, then every change, without end: a watch that breaks is opened again.

        With a name only that object, which is told to be gone also when it does not exist.
        """
        selectors = [*query, ("fieldSelector", f"metadata.name={name}")] if name else list(query)
        while True:
            found = await self._json("GET", kind.path(self.namespace), selectors)
            for item in found.get("items") or ():
                yield Change(item)
            if name and not found.get("items"):
                yield Change({}, gone=True)
            version = str(found["metadata"].get("resourceVersion", ""))
            follow = [*selectors, ("watch", "true"), ("resourceVersion", version)]
            follow.append(("timeoutSeconds", str(_WATCH_SECONDS)))
            try:
                async with self._response("GET", kind.path(self.namespace), follow, seconds=None) as answer:
                    async for line in answer.content:
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            break
                        yield Change(event["object"], event["type"] == "DELETED")
            except AccessError:
                await asyncio.sleep(_RETRY_SECONDS)

    async def log(self, pod: str, query: Query) -> AsyncGenerator[bytes, None]:
        """The lines of a container's log, as they come. Raises NotFoundError without such a pod or log."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}/log"
        async with self._response("GET", path, query, seconds=None) as answer:
            async for line in answer.content:
                yield line

    @asynccontextmanager
    async def websocket(
        self, path: str, query: Query, protocol: str
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """A WebSocket to the API server. Raises CliError if it cannot be opened."""
        url = self._url(path, query).replace("http", "ws", 1)
        # What is asked for in JSON is refused (406): a stream is none.
        headers = await self._headers({"Accept": "*/*"})
        session = self._api.rest_client.pool_manager
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                opened = await session.ws_connect(
                    url,
                    headers=headers,
                    protocols=[protocol],
                    max_msg_size=0,
                    proxy=self._configuration.proxy,
                )
        except aiohttp.WSServerHandshakeError as error:
            raise _refusal(error.status, {}, f"GET {path}", self._configuration.host) from error
        except _NETWORK as error:
            raise AccessError(f"{path}: {error or type(error).__name__}") from error
        async with opened:
            yield opened

    async def _json(
        self,
        method: str,
        path: str,
        query: Query = (),
        body: Json | None = None,
        content: str = "application/json",
    ) -> Json:
        async with self._response(method, path, query, body=body, content=content) as answer:
            found = json.loads(await answer.read())
            return found if isinstance(found, dict) else {}

    @asynccontextmanager
    async def _response(
        self,
        method: str,
        path: str,
        query: Query = (),
        *,
        body: Json | None = None,
        content: str = "",
        seconds: float | None = TIMEOUT_SECONDS,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer that is no refusal. `seconds` None: it may take as long as it likes once it has begun."""
        headers = await self._headers({"Content-Type": content} if body is not None else {})
        limit = aiohttp.ClientTimeout(total=seconds, sock_connect=TIMEOUT_SECONDS)
        data = None if body is None else json.dumps(body)
        session = self._api.rest_client.pool_manager
        try:
            async with session.request(
                method,
                self._url(path, query),
                headers=headers,
                data=data,
                timeout=limit,
                proxy=self._configuration.proxy,
            ) as answer:
                if answer.status >= 400:
                    told = _status_object(await answer.read())
                    raise _refusal(answer.status, told, f"{method} {path}", self._configuration.host)
                yield answer
        except _NETWORK as error:
            host = self._configuration.host
            raise AccessError(
                f"the cluster at {host} does not answer: {error or type(error).__name__}; is it running, "
                f"and is this "
                "the right context? (kubectl config current-context)"
            ) from error

    def _url(self, path: str, query: Query) -> str:
        words = urlencode(list(query))
        return f"{self._configuration.host}{path}" + (f"?{words}" if words else "")

    async def _headers(self, more: dict[str, str]) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": FIELD_MANAGER, **more}
        await self._api.update_params_for_auth(headers, [], ["BearerToken"])
        return headers


def _status_object(body: bytes) -> Json:
    try:
        told = json.loads(body or b"{}")
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _refusal(status: int, told: Json, request: str, host: str | None) -> CliError:
    """The error that an HTTP answer stands for."""
    message = str(told.get("message") or f"{request}: HTTP {status}")
    if status == 401:
        return AccessError(
            f"the cluster at {host} does not know you: renew the credentials of the kubeconfig"
        )
    if status == 403 and "admission" not in message and "exceeded quota" not in message:
        return AccessError(f"{message}; ask for that right, or take another context")
    if status == 404 and not (told.get("details") or {}).get("name") and SERVERS.prefix in request:
        return AccessError(
            "the cluster does not know MCPServers: install the operator (helm install mcpserver-operator), "
            "or take another "
            "context"
        )
    if status == 404:
        return NotFoundError(message)
    if status == 409:
        return ConflictError(message)
    if status in {400, 422}:
        return UsageError(message)
    return AccessError(message) if status in {408, 429, _GONE} or status >= 500 else CliError(message)


@asynccontextmanager
async def connected(where: Where) -> AsyncIterator[Kube]:
    """A client for the cluster that the user chose, closed at the end."""
    configuration, namespace = await access.load(where)
    kube = Kube(configuration, namespace)
    try:
        yield kube
    finally:
        await kube.close()
