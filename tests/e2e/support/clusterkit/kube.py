"""A thin client of the API server: get, apply, delete, and waiting on watches instead of polling."""

import asyncio
import base64
import json
import os
import ssl
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

Json = dict[str, Any]
FIELD_MANAGER = "e2e"
PATIENCE = 60.0  # seconds that a busy node may take for what has no bound of its own


@dataclass(frozen=True)
class Kind:
    """One kind of object: the version of its API and its plural."""

    api_version: str
    plural: str

    def path(self, namespace: str, name: str = "") -> str:
        """The URL's path; an empty `namespace` means the cluster, an empty `name` the whole collection."""
        prefix = "api" if "/" not in self.api_version else "apis"
        scope = f"/namespaces/{namespace}" if namespace else ""
        tail = f"/{name}" if name else ""
        return f"/{prefix}/{self.api_version}{scope}/{self.plural}{tail}"


MCPSERVERS = Kind("mcp-session.dev/v1alpha1", "mcpservers")
PODS = Kind("v1", "pods")
SERVICES = Kind("v1", "services")
SECRETS = Kind("v1", "secrets")
CONFIGMAPS = Kind("v1", "configmaps")
EVENTS = Kind("events.k8s.io/v1", "events")
ENDPOINTSLICES = Kind("discovery.k8s.io/v1", "endpointslices")
DEPLOYMENTS = Kind("apps/v1", "deployments")
LIMITRANGES = Kind("v1", "limitranges")
NETWORKPOLICIES = Kind("networking.k8s.io/v1", "networkpolicies")
NAMESPACES = Kind("v1", "namespaces")
QUOTAS = Kind("v1", "resourcequotas")


class ApiError(Exception):
    """The API server refused; `status` is the HTTP code, the message its own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class WaitError(AssertionError):
    """What was waited for did not come in time; says what stood there last."""


@dataclass(frozen=True)
class Seen:
    """An object as a watch delivered it. `at` is monotonic seconds; `object` is None once it is gone."""

    at: float
    object: Json | None


def kubeconfig_path() -> Path:
    """The kubeconfig in use. Raises RuntimeError when the environment names none."""
    path = os.environ.get("KUBECONFIG", "")
    if not path:
        raise RuntimeError(
            "KUBECONFIG is not set: run `make e2e`, or export what `make -s kubeconfig` prints"
        )
    return Path(path)


def _inline(entry: Json, key: str, directory: str) -> str | None:
    """The path of a certificate or key, written to `directory` when the kubeconfig holds it inline."""
    if data := entry.get(f"{key}-data"):
        path = Path(directory) / key
        path.write_bytes(base64.b64decode(data))
        return str(path)
    value = entry.get(key)
    return None if value is None else str(value)


def load_kubeconfig(path: Path) -> tuple[str, ssl.SSLContext, dict[str, str]]:
    """(server URL, TLS settings, headers) of the current context."""
    config = yaml.safe_load(path.read_text())
    by_name = {
        key: {item["name"]: item[key[:-1]] for item in config[key]}
        for key in ("clusters", "users", "contexts")
    }
    context = by_name["contexts"][config["current-context"]]
    cluster, user = by_name["clusters"][context["cluster"]], by_name["users"][context["user"]]
    with tempfile.TemporaryDirectory() as directory:
        tls = ssl.create_default_context(cafile=_inline(cluster, "certificate-authority", directory))
        if certificate := _inline(user, "client-certificate", directory):
            tls.load_cert_chain(certificate, _inline(user, "client-key", directory))
    headers = {"authorization": f"Bearer {user['token']}"} if "token" in user else {}
    return cluster["server"], tls, headers


class Kube:
    """The API server, as an administrator sees it. Use as an asynchronous context manager."""

    def __init__(self, kubeconfig: Path) -> None:
        server, tls, headers = load_kubeconfig(kubeconfig)
        self.http = httpx.AsyncClient(base_url=server, verify=tls, headers=headers, timeout=20)

    async def __aenter__(self) -> "Kube":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    async def call(self, method: str, path: str, **arguments: Any) -> Json:
        """One request. Raises ApiError for every refusal."""
        response = await self.http.request(method, path, **arguments)
        body: Json = response.json() if "json" in response.headers.get("content-type", "") else {}
        if response.is_error:
            raise ApiError(response.status_code, body.get("message") or response.text)
        return body

    async def get(self, kind: Kind, namespace: str, name: str) -> Json:
        return await self.call("GET", kind.path(namespace, name))

    async def find(self, kind: Kind, namespace: str, name: str) -> Json | None:
        try:
            return await self.get(kind, namespace, name)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def list(self, kind: Kind, namespace: str, selector: str = "") -> list[Json]:
        body = await self.call("GET", kind.path(namespace), params={"labelSelector": selector})
        items: list[Json] = body["items"]
        return items

    async def apply(self, kind: Kind, namespace: str, manifest: Json) -> Json:
        """Server-side apply with strict field validation, as `kubectl apply --server-side` does."""
        return await self.call(
            "PATCH",
            kind.path(namespace, manifest["metadata"]["name"]),
            params={"fieldManager": FIELD_MANAGER, "force": "true", "fieldValidation": "Strict"},
            headers={"content-type": "application/apply-patch+yaml"},
            content=json.dumps(manifest),
        )

    async def merge(self, kind: Kind, namespace: str, name: str, patch: Json) -> Json:
        return await self.call(
            "PATCH",
            kind.path(namespace, name),
            params={"fieldValidation": "Strict"},
            headers={"content-type": "application/merge-patch+json"},
            content=json.dumps(patch),
        )

    async def delete(self, kind: Kind, namespace: str, name: str, grace: int | None = None) -> None:
        """Ask for deletion; an object already gone is no error. `grace` is in seconds."""
        params = {} if grace is None else {"gracePeriodSeconds": str(grace)}
        with missing_is_fine():
            await self.call("DELETE", kind.path(namespace, name), params=params)

    async def log(self, namespace: str, pod: str, container: str, *, previous: bool = False) -> str:
        response = await self.http.get(
            f"{PODS.path(namespace, pod)}/log", params={"container": container, "previous": previous}
        )
        return response.text

    @asynccontextmanager
    async def watch(
        self, kind: Kind, namespace: str, *, name: str = "", selector: str = ""
    ) -> AsyncIterator[AsyncIterator[Seen]]:
        """Objects as they are now, then as they change; the watch is open before the block begins."""
        params = {"labelSelector": selector, "fieldSelector": f"metadata.name={name}" if name else ""}
        listed = await self.call("GET", kind.path(namespace), params=params)
        follow = {
            **params,
            "watch": "true",
            "timeoutSeconds": "600",
            "resourceVersion": listed["metadata"]["resourceVersion"],
        }
        timeout = httpx.Timeout(20, read=None)
        async with (
            self.http.stream("GET", kind.path(namespace), params=follow, timeout=timeout) as response,
            aclosing(_changes(listed["items"], response)) as changes,
        ):
            yield changes

    async def until(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        condition: Callable[[Json | None], bool],
        *,
        within: float = PATIENCE,
        what: str = "",
    ) -> Seen:
        """The first state of one object (None: it does not exist) that meets the condition."""
        last: Json | None = None
        try:
            async with asyncio.timeout(within), self.watch(kind, namespace, name=name) as changes:
                last = await self.find(kind, namespace, name)
                if condition(last):
                    return Seen(time.monotonic(), last)
                async for seen in changes:
                    last = seen.object
                    if condition(last):
                        return seen
        except TimeoutError:
            pass
        wanted = what or getattr(condition, "__name__", "the condition")
        raise WaitError(f"{kind.plural}/{name}: no {wanted} within {within} s; last: {summary(last)}")

    async def gone(self, kind: Kind, namespace: str, name: str, *, within: float = PATIENCE) -> Seen:
        return await self.until(kind, namespace, name, lambda o: o is None, within=within, what="end of it")

    async def replaced(self, kind: Kind, namespace: str, item: Json, *, within: float = PATIENCE) -> Seen:
        """The moment from which this very object is gone; another one of the same name may stand there."""
        name, uid = item["metadata"]["name"], item["metadata"]["uid"]

        def other(found: Json | None) -> bool:
            return found is None or bool(found["metadata"]["uid"] != uid)

        return await self.until(kind, namespace, name, other, within=within, what="end of the old one")


async def _changes(items: list[Json], response: httpx.Response) -> AsyncGenerator[Seen, None]:
    for item in items:
        yield Seen(time.monotonic(), item)
    rest = b""
    async for part in response.aiter_bytes():
        *lines, rest = (rest + part).split(b"\n")
        for line in filter(None, lines):
            event = json.loads(line)
            if event["type"] == "ERROR":
                raise ApiError(event["object"].get("code", 500), event["object"].get("message", ""))
            yield Seen(time.monotonic(), None if event["type"] == "DELETED" else event["object"])


async def first(changes: AsyncIterator[Seen], holds: Callable[[Json | None], bool]) -> Seen:
    """The first change that meets the condition. Bound it with `asyncio.timeout`."""
    async for seen in changes:
        if holds(seen.object):
            return seen
    raise WaitError("the watch ended")


async def change_within(changes: AsyncIterator[Seen], seconds: float) -> Seen | None:
    """The next change, or None when nothing changes for so long."""
    try:
        async with asyncio.timeout(seconds):
            return await anext(changes)
    except TimeoutError:
        return None


@contextmanager
def missing_is_fine() -> Iterator[None]:
    try:
        yield
    except ApiError as error:
        if error.status != 404:
            raise


def summary(item: Json | None) -> str:
    """Enough of an object for a failure message."""
    if item is None:
        return "it does not exist"
    return json.dumps({"metadata": {"name": item["metadata"]["name"]}, "status": item.get("status")})[:4000]
