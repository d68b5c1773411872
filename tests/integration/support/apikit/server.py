"""Lists, watches and writes of the kinds that the operator uses; a test can end watches as it likes."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

Json = dict[str, Any]
Path = tuple[str, str]

GROUPS = {
    "": ("v1", ("pods", "services", "secrets", "configmaps", "namespaces")),
    "apiextensions.k8s.io": ("v1", ("customresourcedefinitions",)),
    "mcp-session.dev": ("v1alpha1", ("mcpservers",)),
    "networking.k8s.io": ("v1", ("networkpolicies",)),
    "events.k8s.io": ("v1", ("events",)),
}
WIDE = ("namespaces", "customresourcedefinitions")
VERBS = ["create", "delete", "get", "list", "patch", "watch"]
GONE = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410, "message": "too old"}


class ApiServer:
    """Objects by plural, namespace and name, and what happened to them since the start.

    A change made in silence reaches no open watch, but one that is opened later from an earlier version.
    """

    def __init__(self) -> None:
        self.objects: dict[str, dict[Path, Json]] = {
            plural: {} for _, plurals in GROUPS.values() for plural in plurals
        }
        self.watches: dict[str, set[asyncio.Queue[Json | None]]] = {plural: set() for plural in self.objects}
        self.history: dict[str, list[tuple[int, Json]]] = {plural: [] for plural in self.objects}
        self.changed = asyncio.Condition()
        self.opened = dict.fromkeys(self.objects, 0)
        self._versions = itertools.count(100)
        self._asked = asyncio.Event()

    async def put(self, plural: str, found: Json, *, silent: bool = False) -> Json:
        """Store an object under a new version."""
        meta = found["metadata"]
        place = (meta.get("namespace", "default"), meta["name"])
        known = self.objects[plural].get(place)
        uid = known["metadata"]["uid"] if known else f"{plural}-{meta['name']}-{next(self._versions)}"
        since = known["metadata"]["creationTimestamp"] if known else f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        made = {**found, "metadata": {"uid": uid, "generation": 1, "creationTimestamp": since, **meta}}
        made["metadata"]["resourceVersion"] = str(next(self._versions))
        self.objects[plural][place] = made
        await self._tell(plural, "MODIFIED" if known else "ADDED", made, silent)
        return made

    async def remove(self, plural: str, name: str, *, silent: bool = False) -> Json:
        """Take an object away."""
        found = self.objects[plural].pop(("default", name))
        found["metadata"]["resourceVersion"] = str(next(self._versions))
        await self._tell(plural, "DELETED", found, silent)
        return found

    async def end_watches(self, plural: str, error: Json | None) -> None:
        """End all watches of a kind, with an error object or, without one, as a broken connection does."""
        for queue in tuple(self.watches[plural]):
            if error is not None:
                queue.put_nowait({"type": "ERROR", "object": error})
            queue.put_nowait(None)

    def deafen(self, plural: str) -> None:
        """Tell the open watches of a kind nothing more, without a word, as a proxy that forgot them does."""
        self.watches[plural].clear()

    async def until(self, true: Any, within: float) -> None:
        """Wait for a condition on the objects or watches."""
        async with asyncio.timeout(within), self.changed:
            await self.changed.wait_for(true)

    async def quiet(self, seconds: float) -> None:
        """Wait until nobody has asked for or changed anything for so long."""
        while True:
            self._asked.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._asked.wait()
            except TimeoutError:
                return

    async def _tell(self, plural: str, kind: str, found: Json, silent: bool) -> None:
        event = {"type": kind, "object": found}
        self.history[plural].append((int(found["metadata"]["resourceVersion"]), event))
        for queue in self.watches[plural] if not silent else ():
            queue.put_nowait(event)
        async with self.changed:
            self.changed.notify_all()

    async def collection(self, request: web.Request) -> web.StreamResponse:
        self._asked.set()
        plural = request.match_info["plural"]
        if request.method == "POST":
            body = await request.json()
            name = body["metadata"].get("name") or f"{body['metadata']['generateName']}{next(self._versions)}"
            if (body["metadata"].get("namespace", "default"), name) in self.objects[plural]:
                told = {"kind": "Status", "reason": "AlreadyExists", "message": f"{name} already exists"}
                return web.json_response(told, status=409)
            return web.json_response(
                await self.put(plural, {**body, "metadata": {**body["metadata"], "name": name}})
            )
        if request.query.get("watch"):
            return await self._watch(request, plural)
        version = {"resourceVersion": str(next(self._versions))}
        return web.json_response({"metadata": version, "items": list(self.objects[plural].values())})

    async def one(self, request: web.Request) -> web.Response:
        self._asked.set()
        plural, name = request.match_info["plural"], request.match_info["name"]
        found = self.objects[plural].get((request.match_info["namespace"], name))
        body = json.loads(await request.read() or b"{}")
        if found is not None and _of_another(found, body):
            return web.json_response({"message": "UID in precondition is another one"}, status=409)
        if request.method == "PATCH" and (found or "apply" in request.content_type):
            return web.json_response(await self.put(plural, _merged(found or {}, body)))
        if found is None:
            return web.json_response({"message": f"{name} not found"}, status=404)
        if request.method == "DELETE":
            found = await self.remove(plural, name)
        return web.json_response(found)

    async def _watch(self, request: web.Request, plural: str) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        queue: asyncio.Queue[Json | None] = asyncio.Queue()
        since = int(request.query.get("resourceVersion") or 0)
        for version, event in self.history[plural]:
            if version > since:
                queue.put_nowait(event)
        self.watches[plural].add(queue)
        self.opened[plural] += 1
        async with self.changed:
            self.changed.notify_all()
        try:
            while (told := await queue.get()) is not None:
                await answer.write(json.dumps(told).encode() + b"\n")
        finally:
            self.watches[plural].discard(queue)
        return answer


def _of_another(found: Json, body: Json) -> bool:
    """Whether a change is meant for an object with another UID."""
    wanted = [body.get(part, {}).get("uid") for part in ("metadata", "preconditions")]
    return any(uid not in (None, found["metadata"]["uid"]) for uid in wanted)


def _merged(old: Json, change: Json) -> Json:
    made = dict(old)
    for key, value in change.items():
        before = made.get(key)
        if value is None:
            made.pop(key, None)
        else:
            made[key] = (
                _merged(before if isinstance(before, dict) else {}, value)
                if isinstance(value, dict)
                else value
            )
    return made


async def _discover(request: web.Request) -> web.Response:
    """What kopf asks before it watches: groups, versions, resources."""
    group, version = request.match_info.get("group", ""), request.match_info.get("version")
    if version is None:
        groups = [
            {"name": name, "preferredVersion": {"version": found}, "versions": [{"version": found}]}
            for name, (found, _) in GROUPS.items()
            if name
        ]
        return web.json_response({"versions": ["v1"]} if request.path == "/api" else {"groups": groups})
    known, plurals = GROUPS.get(group, ("", ()))
    if version != known:
        return web.json_response({"message": "no such group"}, status=404)
    resources = [
        {"name": plural, "singularName": "", "kind": plural, "namespaced": plural not in WIDE, "verbs": VERBS}
        for plural in plurals
    ]
    return web.json_response({"groupVersion": f"{group}/{version}".strip("/"), "resources": resources})


@asynccontextmanager
async def served() -> AsyncIterator[tuple[ApiServer, int]]:
    """A fresh API server, and its port on loopback."""
    server = ApiServer()
    app = web.Application()
    app.add_routes(
        [web.get(path, _discover) for path in ("/api", "/apis", "/api/{version}", "/apis/{group}/{version}")]
    )
    for prefix in ("/api/v1", "/apis/{group}/{version}"):
        inside = f"{prefix}/namespaces/{{namespace}}/{{plural}}"
        app.add_routes(
            [
                web.route("*", f"{prefix}/{{plural}}", server.collection),
                web.route("*", inside, server.collection),
                web.route("*", f"{inside}/{{name}}", server.one),
                web.route("*", f"{inside}/{{name}}/status", server.one),
            ]
        )
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield server, runner.addresses[0][1]
    finally:
        await runner.cleanup()
