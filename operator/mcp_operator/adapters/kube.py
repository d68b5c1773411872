"""The API server: reads, server-side apply, status patches, deletions. The only user of kubernetes-asyncio.

Objects go in and out as plain dictionaries; the client's generated models would cost memory and lose fields.
Every request is bounded in time. Every error that comes out is one of `errors`.
"""

import asyncio
import gc
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import aiohttp
from kubernetes_asyncio import client, config
from kubernetes_asyncio.client.exceptions import ApiException

from mcp_operator.adapters.errors import (
    ConflictError,
    KubeError,
    NotFoundError,
    OutageError,
    RefusedError,
    UnavailableError,
)
from mcp_operator.adapters.kinds import EVENTS, Kind
from mcp_operator.core.naming import FIELD_MANAGER

Json = dict[str, Any]

TIMEOUT_SECONDS: Final = 15.0
PAGE: Final = 200
_CONNECTIONS: Final = 64
_METADATA_ONLY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_NETWORK: Final = (aiohttp.ClientError, TimeoutError, OSError, ssl.SSLError)


@dataclass(frozen=True)
class Access:
    """How to reach the API server, for another client library. Paths are files, texts may be ""."""

    server: str
    authorization: str
    ca_path: str
    certificate_path: str
    key_path: str
    insecure: bool


class Kube:
    """One connection pool to the API server."""

    def __init__(self, configuration: client.Configuration) -> None:
        configuration.connection_pool_maxsize = _CONNECTIONS
        self._configuration = configuration
        self._api = client.ApiClient(configuration)

    async def access(self) -> Access:
        """Address and credentials, fresh."""
        headers: dict[str, str] = {}
        await self._api.update_params_for_auth(headers, [], ["BearerToken"])
        found = self._configuration
        return Access(
            server=found.host or "",
            authorization=headers.get("authorization", ""),
            ca_path=found.ssl_ca_cert or "",
            certificate_path=found.cert_file or "",
            key_path=found.key_file or "",
            insecure=not found.verify_ssl,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._api.close()

    async def served(self, kind: Kind) -> bool:
        """Whether the API server knows the kind."""
        try:
            found = await self._request("GET", kind.prefix)
        except NotFoundError:
            return False
        return any(item.get("name") == kind.plural for item in found.get("resources", ()))

    async def document(self, path: str) -> Json:
        """What the API server itself has at a path, such as what it tells of the tokens that it issues."""
        return await self._request("GET", path, headers={"Accept": "application/json, */*"})

    async def read(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """One object; None if there is none."""
        try:
            return await self._request("GET", kind.path(namespace, name))
        except NotFoundError:
            return None

    async def listing(
        self, kind: Kind, namespace: str | None, metadata_only: bool = False
    ) -> AsyncIterator[Json]:
        """All objects that the kind's selectors choose, page by page; `namespace` None: in all namespaces."""
        query = [("limit", str(PAGE))]
        query += [("labelSelector", kind.selector)] if kind.selector else []
        query += [("fieldSelector", kind.fields)] if kind.fields else []
        headers = {"Accept": _METADATA_ONLY} if metadata_only else {}
        following = ""
        while True:
            page = [*query, ("continue", following)] if following else query
            found = await self._request("GET", kind.path(namespace), query=page, headers=headers)
            for item in _items(found):
                yield item
            following = found.get("metadata", {}).get("continue", "")
            if not following:
                return

    async def events_about(self, namespace: str, uid: str) -> list[Json]:
        """The Events about one object, newest last."""
        query = [("fieldSelector", f"regarding.uid={uid}"), ("limit", str(PAGE))]
        found = await self._request("GET", EVENTS.path(namespace), query=query)
        return _items(found)

    async def apply(self, kind: Kind, body: Json) -> Json:
        """Server-side apply; what others own and we name becomes ours."""
        meta = body["metadata"]
        query = [("fieldManager", FIELD_MANAGER), ("force", "true")]
        path = kind.path(meta["namespace"], meta["name"])
        return await self._patch(path, "application/apply-patch+yaml", body, query)

    async def create(self, kind: Kind, body: Json) -> Json:
        """Create one object. Raises ConflictError if the name is taken."""
        query = [("fieldManager", FIELD_MANAGER)]
        return await self._request("POST", kind.path(body["metadata"]["namespace"]), body=body, query=query)

    async def delete(
        self, kind: Kind, namespace: str, name: str, uid: str, grace: int | None = None
    ) -> Json | None:
        """Delete this very object; None if it is gone already. `grace` in seconds, None: the object's own."""
        options: Json = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        try:
            return await self._request("DELETE", kind.path(namespace, name), body=options)
        except (NotFoundError, ConflictError):
            return None

    async def patch_status(self, kind: Kind, namespace: str, name: str, uid: str, status: Json) -> Json:
        """Merge into the status of this very object. Raises ConflictError if another one has its name."""
        body = {"metadata": {"uid": uid}, "status": status}
        path = kind.path(namespace, name, "status")
        return await self._patch(
            path, "application/merge-patch+json", body, [("fieldManager", FIELD_MANAGER)]
        )

    async def _patch(self, path: str, content: str, body: Json, query: list[tuple[str, str]]) -> Json:
        return await self._request("PATCH", path, body=body, query=query, headers={"Content-Type": content})

    async def _request(
        self,
        method: str,
        path: str,
        *,
        query: list[tuple[str, str]] | None = None,
        body: Json | None = None,
        headers: dict[str, str] | None = None,
    ) -> Json:
        sent = {"Accept": "application/json", "User-Agent": FIELD_MANAGER, **(headers or {})}
        url = f"{self._configuration.host}{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            await self._api.update_params_for_auth(sent, [], ["BearerToken"])
            async with asyncio.timeout(TIMEOUT_SECONDS):
                answer = await self._api.rest_client.request(method, url, headers=sent, body=body)
        except ApiException as error:
            raise translate(error.status, error.body, f"{method} {path}") from error
        except _NETWORK as error:
            raise OutageError(f"{method} {path}: {error or type(error).__name__}") from error
        return _object(answer.data, f"{method} {path}")


def _object(body: bytes | str, request: str) -> Json:
    """What stands between us and the API server may answer 200 with a page of its own."""
    try:
        with _uncollected():
            found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UnavailableError(f"{request}: the answer is no JSON: {error}") from error
    return found if isinstance(found, dict) else {}


@contextmanager
def _uncollected() -> Iterator[None]:
    """No collection of garbage meanwhile: a page of a list has a hundred thousand new objects and no cycle.

    With all that is known of many servers in memory, each vain look for garbage took longer than the page.
    """
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _items(answer: Json) -> list[Json]:
    """The items of a list; an empty one of metadata has null there instead."""
    return list(answer.get("items") or ())


def translate(status: int | None, body: bytes | str | None, request: str) -> KubeError:
    """The error that an HTTP answer stands for."""
    told = _status_object(body)
    message = str(told.get("message") or f"{request}: HTTP {status}")
    if status == 404:
        return NotFoundError(message)
    if status == 409:
        return ConflictError(message)
    if status is None or status in {0, 401, 408, 410, 429} or status >= 500:
        return UnavailableError(f"{request}: HTTP {status}: {message}")
    causes = (told.get("details") or {}).get("causes") or ()
    return RefusedError(status, message, next((str(cause.get("reason", "")) for cause in causes), ""))


def _status_object(body: bytes | str | None) -> Json:
    try:
        told = json.loads(body or "{}")
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


async def load() -> client.Configuration:
    """The configuration of the pod's service account, else of the kubeconfig.

    Raises:
        UnavailableError: there is neither.

    """
    configuration = client.Configuration()
    try:
        config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]  # theirs
    except config.ConfigException:
        try:
            await config.load_kube_config(client_configuration=configuration)
        except config.ConfigException as error:
            raise UnavailableError(
                f"neither a service account nor a kubeconfig can be used: {error}"
            ) from error
    return configuration


@asynccontextmanager
async def connected() -> AsyncIterator[Kube]:
    """A client with the configuration at hand, closed at the end."""
    kube = Kube(await load())
    try:
        yield kube
    finally:
        await kube.close()
