"""Whole reconciles against an API server in memory: the state of the world before and after."""

import copy
import itertools
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from mcp_operator.adapters.errors import ConflictError, NotFoundError, RefusedError, UnavailableError
from mcp_operator.adapters.kinds import EVENTS, PODS, SECRETS, SERVERS, SERVICES, Kind
from mcp_operator.adapters.kube import Kube
from mcp_operator.core.observation import RelayView
from mcp_operator.handlers.cache import Cache
from mcp_operator.handlers.children import Nursery
from mcp_operator.handlers.doors import Doors
from mcp_operator.handlers.mcpserver import Reconciler
from mcp_operator.handlers.observer import Observer
from mcp_operator.handlers.relays import RelayWatches
from mcp_operator.handlers.steps import Executor
from mcp_operator.metrics import Metrics
from mcp_operator.settings import Settings

Json = dict[str, Any]
KEY = ("default", "time")


class FakeKube:
    """Objects by kind and name; versions count up; writes are remembered; errors can be ordered."""

    def __init__(self) -> None:
        self.objects: dict[Kind, dict[str, Json]] = {
            kind: {} for kind in (SERVERS, PODS, SERVICES, SECRETS, EVENTS)
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
        nursery = Nursery(kube, self.cache)
        relays = RelayWatches(lambda key: None, 30, 5)
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
            ),
            executor=Executor(kube, self.cache, nursery, relays.reconnect),
            relays=relays,
            metrics=Metrics(),
            settings=settings,
            clock=lambda: self.now,
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


FIRST = [
    "apply secrets mcp-time",
    "apply services mcp-time",
    "create pods mcp-time-1",
    "status mcpservers time",
]


async def test_a_new_resource_gets_its_children_and_one_write_of_its_status(setup: Setup) -> None:
    setup.server()
    await setup.reconcile(KEY)
    assert setup.told() == FIRST
    assert setup.status()["phase"] == "Pending"
    assert setup.status()["session"] == {"podName": "mcp-time-1", "podUID": "uid-pods-mcp-time-1", "epoch": 1}
    assert [event["reason"] for event in setup.kube.objects[EVENTS].values()] == ["Created"]


async def test_at_rest_nothing_is_written(setup: Setup) -> None:
    setup.server()
    await setup.reconcile(KEY)
    await setup.reconcile(KEY)
    setup.told()
    for _ in range(5):
        await setup.reconcile(KEY)
    assert setup.told() == []


@pytest.mark.parametrize(
    ("kind", "rewritten"), [(SERVICES, ["apply services mcp-time"]), (SECRETS, ["apply secrets mcp-time"])]
)
async def test_a_child_that_somebody_deletes_comes_back(
    setup: Setup, kind: Kind, rewritten: list[str]
) -> None:
    setup.server()
    await setup.reconcile(KEY)
    await setup.reconcile(KEY)
    setup.told()
    setup.cache.remove(kind, setup.kube.objects[kind].pop("mcp-time"))
    await setup.reconcile(KEY)
    assert set(rewritten) <= set(setup.told())
    assert setup.names(kind) == ["mcp-time"]


async def test_another_operator_keeps_the_values_of_the_secret_and_the_pod(setup: Setup, world: Any) -> None:
    setup.server()
    await setup.reconcile(KEY)
    before = setup.kube.objects[SECRETS]["mcp-time"]["data"]
    assert len(set(before.values())) == 3
    setup.told()
    successor = Setup(world, setup.kube)
    successor.cache.put(SERVERS, setup.kube.objects[SERVERS]["time"])
    successor.cache.put(PODS, setup.kube.objects[PODS]["mcp-time-1"])
    await successor.reconcile(KEY)
    assert setup.kube.objects[SECRETS]["mcp-time"]["data"] == before
    assert setup.told() == ["status mcpservers time"]


async def test_a_drifted_service_is_put_right_and_the_pod_left_alone(setup: Setup) -> None:
    setup.server()
    await setup.reconcile(KEY)
    await setup.reconcile(KEY)
    setup.told()
    changed = copy.deepcopy(setup.kube.objects[SERVICES]["mcp-time"])
    changed["spec"]["selector"] = {"app": "other"}
    setup.cache.put(SERVICES, setup.kube.store(SERVICES, changed))
    await setup.reconcile(KEY)
    assert setup.told() == ["apply services mcp-time"]


async def test_a_foreign_service_is_never_touched(setup: Setup) -> None:
    setup.server()
    setup.kube.store(SERVICES, {"metadata": {"namespace": "default", "name": "mcp-time"}, "spec": {"x": 1}})
    await setup.reconcile(KEY)
    assert setup.told() == ["status mcpservers time"]
    assert setup.status()["error"]["reason"] == "OwnershipConflict"
    assert setup.kube.objects[SERVICES]["mcp-time"]["spec"] == {"x": 1}


async def test_a_refused_pod_shows_in_the_status_and_is_not_tried_again_at_once(setup: Setup) -> None:
    setup.server()
    setup.kube.errors["create pods"] = RefusedError(403, "exceeded quota: memory")
    delay = await setup.reconcile(KEY)
    assert delay == pytest.approx(2)
    assert setup.status()["error"]["reason"] == "QuotaExceeded"
    setup.told()
    await setup.reconcile(KEY)
    assert setup.told() == []


REFUSALS = [
    ("apply services", "the Service", 'services "mcp-time" is forbidden: exceeded quota: count/services'),
    ("apply secrets", "the Secret", "admission webhook denied the request"),
]


@pytest.mark.parametrize(("request_", "what", "message"), REFUSALS)
async def test_a_refused_service_or_secret_shows_in_the_status_with_the_pod_that_was_made(
    setup: Setup, request_: str, what: str, message: str
) -> None:
    setup.server()
    setup.kube.errors[request_] = RefusedError(403, message)
    assert await setup.reconcile(KEY) == pytest.approx(2)
    found = setup.status()
    assert (found["phase"], found["error"]["phase"]) == ("Pending", "Admission")
    assert found["error"]["message"] == f'the API server refused {what} "mcp-time": {message}'
    assert found["session"] == {"podName": "mcp-time-1", "podUID": "uid-pods-mcp-time-1", "epoch": 1}
    setup.told()
    for _ in range(3):
        await setup.reconcile(KEY)
    assert set(setup.told()) == {f"{request_} mcp-time"}
    assert setup.status()["recovery"]["consecutiveFailures"] == 1
    del setup.kube.errors[request_]
    setup.now += timedelta(seconds=2)
    await setup.reconcile(KEY)
    assert setup.names(SERVICES) == setup.names(SECRETS) == ["mcp-time"]
    assert setup.status()["recovery"]["consecutiveFailures"] == 1
    assert setup.names(PODS) == ["mcp-time-1"]


async def test_a_service_that_stays_refused_is_an_error_in_the_end_and_the_pod_is_left_alone(
    setup: Setup,
) -> None:
    setup.server()
    setup.kube.errors["apply services"] = RefusedError(403, "no")
    delays = []
    for _ in range(5):
        delay = await setup.reconcile(KEY)
        delays.append(delay)
        setup.now += timedelta(seconds=delay or 0)
    assert delays == [2, 4, 8, 300, 300]
    assert (setup.status()["phase"], setup.status()["error"]["reason"]) == ("Error", "AdmissionRefused")
    assert setup.names(PODS) == ["mcp-time-1"]


async def test_a_suspended_resource_stays_so_when_its_service_is_refused(setup: Setup) -> None:
    setup.server(suspend=True)
    setup.kube.errors["apply services"] = RefusedError(403, "no")
    assert await setup.reconcile(KEY) == pytest.approx(2)
    assert (setup.status()["phase"], setup.status()["error"]["phase"]) == ("Suspended", "Admission")


async def test_a_pod_that_may_not_be_deleted_shows_in_the_status_and_has_no_successor(setup: Setup) -> None:
    setup.server()
    await setup.reconcile(KEY)
    setup.kube.errors["delete pods"] = RefusedError(403, "admission webhook denied the request")
    setup.server(args=["--verbose"])
    assert await setup.reconcile(KEY) == pytest.approx(2)
    assert setup.status()["error"]["message"].startswith(
        'the API server refused to delete the pod "mcp-time-1": admission webhook'
    )
    assert setup.names(PODS) == ["mcp-time-1"]


async def test_an_api_server_that_is_away_flips_no_status_and_deletes_nothing(setup: Setup) -> None:
    setup.server()
    setup.kube.errors["create pods"] = UnavailableError("away")
    with pytest.raises(UnavailableError):
        await setup.reconcile(KEY)
    assert setup.status() == {}
    assert not [write for write in setup.told() if write.startswith(("delete", "status"))]
    del setup.kube.errors["create pods"]
    await setup.reconcile(KEY)
    assert setup.names(PODS) == ["mcp-time-1"]


async def test_a_pod_whose_answer_was_lost_is_found_again(setup: Setup) -> None:
    setup.server()
    await setup.reconcile(KEY)
    setup.cache.remove(
        PODS, {"metadata": {**setup.kube.objects[PODS]["mcp-time-1"]["metadata"], "uid": "other"}}
    )
    forgotten = Cache()
    setup.cache._objects[PODS] = forgotten._objects[PODS]
    setup.kube.objects[SERVERS]["time"].pop("status")
    setup.server()
    await setup.reconcile(KEY)
    assert setup.names(PODS) == ["mcp-time-1"]


async def test_a_namespace_that_goes_away_makes_no_noise(setup: Setup) -> None:
    setup.server()
    going = RefusedError(403, "is being terminated", "NamespaceTerminating")
    setup.kube.errors = {"apply services": going, "apply secrets": going, "create pods": going}
    assert await setup.reconcile(KEY) is None
    assert setup.names(PODS) == []


async def test_a_resource_that_is_being_deleted_gets_nothing(setup: Setup) -> None:
    setup.server()
    found = setup.kube.objects[SERVERS]["time"]
    found["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z"
    setup.cache.put(SERVERS, setup.kube.store(SERVERS, found))
    await setup.reconcile(KEY)
    assert setup.told() == ["status mcpservers time"]
    assert setup.status()["phase"] == "Terminating"


async def test_a_resource_that_is_gone_is_forgotten(setup: Setup) -> None:
    setup.server()
    await setup.reconcile(KEY)
    setup.cache.remove(SERVERS, setup.kube.objects[SERVERS].pop("time"))
    setup.told()
    assert await setup.reconcile(KEY) is None
    assert setup.told() == []


async def test_another_spec_replaces_the_pod_once(setup: Setup) -> None:
    setup.server()
    await setup.reconcile(KEY)
    setup.server(args=["--verbose"])
    for _ in range(4):
        await setup.reconcile(KEY)
    made = [write for write in setup.told() if "pods" in write]
    assert made == ["create pods mcp-time-1", "create pods mcp-time-2", "delete pods mcp-time-1"]


async def test_a_secret_that_appears_makes_a_new_pod(setup: Setup) -> None:
    setup.server(env=[{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "k"}}}])
    await setup.reconcile(KEY)
    accepted = setup.status()["conditions"][0]
    assert (accepted["type"], accepted["reason"]) == ("Accepted", "SecretNotFound")
    setup.kube.store(SECRETS, {"metadata": {"namespace": "default", "name": "keys"}, "data": {"k": "dg=="}})
    await setup.reconcile(KEY)
    await setup.reconcile(KEY)
    assert setup.names(PODS) == ["mcp-time-2"]
    assert setup.status()["conditions"][0]["reason"] == "Valid"


async def test_a_status_that_another_version_wrote_is_written_anew(setup: Setup) -> None:
    setup.server()
    await setup.reconcile(KEY)
    found = setup.kube.objects[SERVERS]["time"]
    found["status"]["phase"] = "Dancing"
    setup.cache.put(SERVERS, setup.kube.store(SERVERS, found))
    await setup.reconcile(KEY)
    assert setup.status()["phase"] == "Pending"


async def test_a_resource_deleted_during_its_reconcile_is_no_error(setup: Setup) -> None:
    setup.server()
    setup.kube.objects[SERVERS].pop("time")
    assert await setup.reconcile(KEY) is None
