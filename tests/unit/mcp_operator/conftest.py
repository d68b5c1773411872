"""A healthy world for the decision tests, each of which changes what it is about; an API server in memory."""

import copy
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from mcp_operator.adapters.errors import ConflictError, NotFoundError
from mcp_operator.adapters.issuers import Issuers
from mcp_operator.adapters.kinds import EVENTS, NETWORK_POLICIES, PODS, SECRETS, SERVERS, SERVICES, Kind
from mcp_operator.adapters.kube import Kube
from mcp_operator.adapters.registry import Registries
from mcp_operator.core.api import ErrorPhase, MCPServerSpec, MCPServerStatus
from mcp_operator.core.api.status import RecoveryStatus, SessionStatus
from mcp_operator.core.decide import decide
from mcp_operator.core.observation import (
    ContainerFacts,
    ContainerState,
    Ending,
    Observation,
    PodFacts,
    RelayView,
)
from mcp_operator.handlers.cache import Cache
from mcp_operator.handlers.children import Nursery
from mcp_operator.handlers.doors import Doors
from mcp_operator.handlers.entrypoints import EntryPoints
from mcp_operator.handlers.keysets import KeySets
from mcp_operator.handlers.mcpserver import Reconciler
from mcp_operator.handlers.observer import Observer
from mcp_operator.handlers.relays import RelayWatches
from mcp_operator.handlers.steps import Executor
from mcp_operator.metrics import Metrics
from mcp_operator.settings import Settings
from mcp_relay_api.status import RelayStatus

Json = dict[str, Any]
NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
HASH = "spec.refs"


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


@dataclass(frozen=True)
class World:
    """Makers of facts; all of them describe a server that has been connected for a minute."""

    now: datetime = NOW
    config_hash: str = HASH

    def ago(self, seconds: float) -> datetime:
        return ago(seconds)

    def later(self, seconds: float) -> datetime:
        return ago(-seconds)

    def running(self, seconds: float = 60, last: Ending | None = None) -> ContainerFacts:
        return ContainerFacts(ContainerState.RUNNING, started_at=ago(seconds), last=last)

    def waiting(self, reason: str, message: str = "", last: Ending | None = None) -> ContainerFacts:
        return ContainerFacts(ContainerState.WAITING, reason=reason, message=message, last=last)

    def ending(self, code: int, reason: str = "Error", message: str = "", at: float = 3) -> Ending:
        return Ending(reason=reason, message=message, exit_code=code, finished_at=ago(at))

    def terminated(self, code: int, reason: str = "", message: str = "") -> ContainerFacts:
        return ContainerFacts(
            ContainerState.TERMINATED, reason=reason, message=message, exit_code=code, finished_at=ago(1)
        )

    def pod(self, **changes: Any) -> PodFacts:
        healthy = PodFacts(
            name="mcp-time-1",
            uid="pod-1",
            epoch=1,
            config_hash=HASH,
            phase="Running",
            ip="10.0.0.1",
            scheduled=True,
            ready=True,
            created_at=ago(61),
            server=self.running(),
            relay=self.running(),
        )
        return replace(healthy, **changes)

    def pending(self, server: ContainerFacts | None = None, **changes: Any) -> PodFacts:
        relay = self.running() if server is not None else ContainerFacts()
        fresh = {"phase": "Pending", "ready": False, "ip": None, "created_at": ago(1)}
        return self.pod(**{**fresh, "relay": relay, "server": server or ContainerFacts(), **changes})

    def report(self, **changes: Any) -> RelayStatus:
        document = {
            "instance": "one",
            "revision": 3,
            "state": "Connected",
            "since": ago(60).timestamp(),
            "process": {"incarnation": "abc", "pid": 7, "startTime": ago(60).timestamp()},
            "session": {
                "protocolVersion": "2025-11-25",
                "serverInfo": {"name": "time", "version": "1.0"},
                "capabilities": {"tools": {"listChanged": True}},
                "since": ago(60).timestamp(),
                "adopted": False,
            },
            "handshakes": 1,
            "clients": 2,
            "toolCount": 1,
            "toolsDigest": "sha256:1",
            "tools": [{"name": "now", "description": "Tells the time"}],
        }
        return RelayStatus.model_validate({**document, **changes})

    def connecting(self, seconds: float = 1, **changes: Any) -> RelayView:
        empty: dict[str, Any] = {"session": None, "toolCount": None, "toolsDigest": None, "tools": []}
        since = ago(seconds).timestamp()
        return RelayView(self.report(**{**empty, "state": "Connecting", "since": since, **changes}))

    def status(self, **recovery: Any) -> MCPServerStatus:
        epoch = recovery.pop("epoch", 1)
        error = recovery.pop("error", None)
        pod_uid = recovery.pop("pod_uid", None)
        return MCPServerStatus(
            observed_generation=1,
            phase=recovery.pop("phase", None),
            error=error,
            recovery=RecoveryStatus(**{"config_hash": HASH, **recovery}),
            session=SessionStatus(epoch=epoch, pod_uid=pod_uid),
        )

    def spec(self, **fields: Any) -> MCPServerSpec:
        return MCPServerSpec.parse({"command": ["uvx", "mcp-server-time"], **fields})

    def seen(self, **changes: Any) -> Observation:
        healthy = Observation(
            now=NOW,
            name="time",
            namespace="default",
            generation=1,
            spec=self.spec(),
            status=self.status(),
            config_hash=HASH,
            pods=(self.pod(),),
            relay=RelayView(self.report()),
        )
        return replace(healthy, **changes)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def decided(world: World) -> Callable[[Callable[[World], dict[str, Any]], str, ErrorPhase | None], None]:
    """Checks one row of the table; the same facts must give the same plan again."""

    def check(change: Callable[[World], dict[str, Any]], expected: str, error: ErrorPhase | None) -> None:
        seen = world.seen(**change(world))
        plan = decide(seen)
        assert str(plan) == expected
        assert (plan.failure.phase if plan.failure else None) == error
        assert decide(seen) == plan

    return check


class FakeKube:
    """Objects by kind and name; versions count up; writes are remembered; errors can be ordered."""

    def __init__(self) -> None:
        self.objects: dict[Kind, dict[str, Json]] = {
            kind: {} for kind in (SERVERS, PODS, SERVICES, SECRETS, NETWORK_POLICIES, EVENTS)
        }
        self.versions = itertools.count(1)
        self.writes: list[str] = []
        self.errors: dict[str, Exception] = {}

    def store(self, kind: Kind, found: Json) -> Json:
        meta = found["metadata"]
        made = {**found, "metadata": {"uid": f"uid-{kind.plural}-{meta['name']}", **meta}}
        made["metadata"]["resourceVersion"] = str(next(self.versions))
        self.objects[kind][meta["name"]] = made
        return copy.deepcopy(made)

    def _write(self, verb: str, kind: Kind, name: str) -> None:
        self.writes.append(f"{verb} {kind.plural} {name}")
        error = self.errors.get(f"{verb} {kind.plural}")
        if error is not None:
            raise error

    async def read(self, kind: Kind, namespace: str, name: str) -> Json | None:
        return copy.deepcopy(self.objects.get(kind, {}).get(name))

    async def apply(self, kind: Kind, body: Json) -> Json:
        self._write("apply", kind, body["metadata"]["name"])
        return self.store(kind, body)

    async def create(self, kind: Kind, body: Json) -> Json:
        name = body["metadata"].get("name") or f"{body['metadata']['generateName']}{len(self.objects[kind])}"
        self._write("create", kind, name)
        if name in self.objects[kind]:
            raise ConflictError(name)
        return self.store(kind, {**body, "metadata": {**body["metadata"], "name": name}})

    async def delete(
        self, kind: Kind, namespace: str, name: str, uid: str, grace: int | None = None
    ) -> Json | None:
        self._write("delete", kind, name)
        found = self.objects[kind].pop(name)
        return self.store(kind, {**found, "metadata": {**found["metadata"], "deletionTimestamp": "now"}})

    async def patch_status(self, kind: Kind, namespace: str, name: str, uid: str, change: Json) -> Json:
        self._write("status", kind, name)
        if name not in self.objects[kind]:
            raise NotFoundError(name)
        found = self.objects[kind][name]
        return self.store(kind, {**found, "status": _merged(found.get("status") or {}, change)})

    async def events_about(self, namespace: str, uid: str) -> list[Json]:
        return []


def _merged(old: Json, change: Json) -> Json:
    made = dict(old)
    for key, value in change.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = _merged(made.get(key) or {}, value) if isinstance(value, dict) else value
    return made


class Setup:
    """A reconciler with its parts; relays are never asked, the tests say what they told."""

    def __init__(self, world: Any, api: FakeKube | None = None) -> None:
        self.kube = api or FakeKube()
        self.cache = Cache()
        self.view = RelayView()
        self.now: datetime = world.now
        kube = cast("Kube", self.kube)
        settings = Settings(relay_image="relay:1", runtime_image="runtime:1")
        nursery = self.nursery = Nursery(kube, self.cache, settings)
        relays = RelayWatches(lambda key: None, 30, 5)
        # The registries are given by the tests that need them.
        self.entries = EntryPoints(kube, cast("Registries", None), lambda key: None, lambda: self.now)
        self.key_sets = KeySets(kube, cast("Issuers", None), lambda key: None)
        self.reconcile = Reconciler(
            kube=kube,
            cache=self.cache,
            observer=Observer(
                kube,
                self.cache,
                nursery,
                lambda key, uid: self.view,
                settings,
                lambda: self.now,
                Doors(lambda key: None),
                self.entries,
                self.key_sets,
            ),
            executor=Executor(kube, self.cache, nursery, relays.reconnect, self.entries.ask),
            relays=relays,
            metrics=Metrics(),
            settings=settings,
            clock=lambda: self.now,
            key_sets=self.key_sets,
        )

    def server(self, **spec: Any) -> None:
        meta = {"namespace": "default", "name": "time", "uid": "u", "generation": 1}
        body = {"metadata": meta, "spec": {"command": ["uvx", "mcp-server-time"], **spec}}
        before = self.kube.objects[SERVERS].get("time", {})
        self.cache.put(SERVERS, self.kube.store(SERVERS, {**before, **body}))

    def status(self) -> Json:
        found: Json = self.kube.objects[SERVERS]["time"].get("status", {})
        return found

    def names(self, kind: Kind) -> list[str]:
        return [
            name
            for name, found in self.kube.objects[kind].items()
            if "deletionTimestamp" not in found["metadata"]
        ]

    def told(self) -> list[str]:
        writes, self.kube.writes = self.kube.writes, []
        return sorted(write for write in writes if "events" not in write)


@pytest.fixture
def setup(world: Any) -> Setup:
    return Setup(world)
