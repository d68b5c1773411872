"""Whole reconciles against an API server in memory: the state of the world before and after."""

import base64
import copy
from typing import Any

import pytest

from mcp_operator.adapters.errors import UnavailableError
from mcp_operator.adapters.kinds import EVENTS, NETWORK_POLICIES, PODS, SECRETS, SERVERS, SERVICES, Kind
from mcp_operator.core.observation import RelayView
from mcp_operator.handlers.cache import Cache

KEY = ("default", "time")
# A reconciler against an API server in memory, from conftest.
Setup = Any

FIRST = [
    "apply networkpolicies mcp-time",
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
    ("kind", "rewritten"),
    [
        (SERVICES, ["apply services mcp-time"]),
        (SECRETS, ["apply secrets mcp-time"]),
        (NETWORK_POLICIES, ["apply networkpolicies mcp-time"]),
    ],
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
    successor = type(setup)(world, setup.kube)
    successor.cache.put(SERVERS, setup.kube.objects[SERVERS]["time"])
    successor.cache.put(PODS, setup.kube.objects[PODS]["mcp-time-1"])
    await successor.reconcile(KEY)
    assert setup.kube.objects[SECRETS]["mcp-time"]["data"] == before
    assert setup.told() == ["status mcpservers time"]


async def test_a_pod_that_another_operator_made_is_not_missed_before_its_event_comes(
    setup: Setup, world: Any
) -> None:
    setup.server()
    await setup.reconcile(KEY)
    setup.told()
    other = type(setup)(world, setup.kube)
    other.cache.put(SERVERS, setup.kube.objects[SERVERS]["time"])
    await other.reconcile(KEY)
    assert setup.names(PODS) == ["mcp-time-1"]
    assert setup.told() == ["status mcpservers time"]


@pytest.mark.parametrize("seen", [True, False])
async def test_a_pod_is_replaced_at_once_where_its_end_was_seen_and_after_a_look_where_not(
    setup: Setup, world: Any, monkeypatch: pytest.MonkeyPatch, seen: bool
) -> None:
    setup.server()
    await setup.reconcile(KEY)
    gone = setup.kube.objects[PODS].pop("mcp-time-1")
    asked: list[str] = []
    read = setup.kube.read

    async def counted(kind: Kind, namespace: str, name: str) -> Any:
        asked.append(name)
        return await read(kind, namespace, name)

    monkeypatch.setattr(setup.kube, "read", counted)
    other = type(setup)(world, setup.kube)
    other.cache.put(SERVERS, setup.kube.objects[SERVERS]["time"])
    if seen:
        other.cache.put(PODS, gone)
        other.cache.remove(PODS, gone)
    await other.reconcile(KEY)
    await other.reconcile(KEY)
    assert setup.names(PODS) == ["mcp-time-2"]
    assert asked.count("mcp-time-1") == (0 if seen else 1)


async def test_another_pod_under_the_name_that_the_status_tells_stays_known(setup: Setup, world: Any) -> None:
    setup.server()
    await setup.reconcile(KEY)
    setup.kube.objects[PODS].clear()
    meta = {"namespace": "default", "name": "mcp-time-1", "uid": "of someone else"}
    foreign = setup.kube.store(PODS, {"metadata": meta})
    other = type(setup)(world, setup.kube)
    other.cache.put(SERVERS, setup.kube.objects[SERVERS]["time"])
    other.cache.put(PODS, foreign)
    await other.reconcile(KEY)
    assert other.cache.get(PODS, ("default", "mcp-time-1")) is not None
    assert other.cache.is_gone("uid-pods-mcp-time-1")


async def test_values_are_made_only_where_some_are_missing_and_kept_only_until_they_are_written(
    setup: Setup,
) -> None:
    setup.server()
    setup.kube.errors["apply secrets"] = UnavailableError("away")
    with pytest.raises(UnavailableError):
        await setup.reconcile(KEY)
    kept = setup.nursery._fresh["u"]
    del setup.kube.errors["apply secrets"]
    await setup.reconcile(KEY)
    written = setup.kube.objects[SECRETS]["mcp-time"]["data"]
    assert {key: base64.b64decode(value) for key, value in written.items()} == kept
    await setup.reconcile(KEY)
    assert setup.nursery._fresh == {}


async def test_values_of_a_resource_that_was_replaced_by_another_of_its_name_are_forgotten(
    setup: Setup,
) -> None:
    setup.server()
    setup.kube.errors["apply secrets"] = UnavailableError("away")
    with pytest.raises(UnavailableError):
        await setup.reconcile(KEY)
    found = setup.kube.objects[SERVERS]["time"]
    meta = {**found["metadata"], "uid": "v"}
    setup.cache.put(SERVERS, setup.kube.store(SERVERS, {**found, "metadata": meta}))
    await setup.reconcile(KEY)
    assert setup.nursery._fresh == {}


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


@pytest.mark.parametrize("kind", [SERVICES, NETWORK_POLICIES])
async def test_a_foreign_child_is_never_touched(setup: Setup, kind: Kind) -> None:
    setup.server()
    setup.kube.store(kind, {"metadata": {"namespace": "default", "name": "mcp-time"}, "spec": {"x": 1}})
    await setup.reconcile(KEY)
    assert setup.told() == ["status mcpservers time"]
    assert setup.status()["error"]["reason"] == "OwnershipConflict"
    assert setup.kube.objects[kind]["mcp-time"]["spec"] == {"x": 1}


async def test_another_network_class_changes_the_policy_and_leaves_the_pod_alone(setup: Setup) -> None:
    setup.server()
    await setup.reconcile(KEY)
    await setup.reconcile(KEY)
    setup.told()
    setup.server(network={"egress": "None", "ingressFrom": []})
    await setup.reconcile(KEY)
    await setup.reconcile(KEY)
    assert setup.told() == ["apply networkpolicies mcp-time"]
    assert "egress" not in setup.kube.objects[NETWORK_POLICIES]["mcp-time"]["spec"]


async def test_the_policy_is_written_before_the_pod(setup: Setup) -> None:
    setup.server()
    await setup.reconcile(KEY)
    assert setup.kube.writes[0] == "apply networkpolicies mcp-time"


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


async def test_the_event_of_a_replacement_names_what_changed(setup: Setup, world: Any) -> None:
    setup.server(env=[{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "k"}}}])
    await setup.reconcile(KEY)
    setup.kube.store(SECRETS, {"metadata": {"namespace": "default", "name": "keys"}, "data": {"k": "dg=="}})
    await setup.reconcile(KEY)
    told = [event["note"] for event in setup.kube.objects[EVENTS].values()]
    assert told[-1] == 'created pod mcp-time-2: Secret "keys" is there now'
    assert setup.status()["recovery"]["restarts"] == 0


async def test_a_token_of_the_operators_own_goes_when_the_user_names_one_and_comes_back(
    setup: Setup,
) -> None:
    setup.server()
    await setup.reconcile(KEY)
    assert "token" in setup.kube.objects[SECRETS]["mcp-time"]["data"]
    setup.kube.store(
        SECRETS, {"metadata": {"namespace": "default", "name": "mine"}, "data": {"token": "dG9rZW4="}}
    )
    setup.server(auth={"bearer": {"secretRef": {"name": "mine"}}})
    await setup.reconcile(KEY)
    assert "token" not in setup.kube.objects[SECRETS]["mcp-time"]["data"]
    setup.server(auth={"type": "Bearer"})
    await setup.reconcile(KEY)
    assert "token" in setup.kube.objects[SECRETS]["mcp-time"]["data"]


async def test_no_pod_is_made_with_an_empty_token_and_the_cure_is_told(setup: Setup) -> None:
    empty = {"metadata": {"namespace": "default", "name": "mine"}, "data": {"token": "IAo="}}
    setup.kube.store(SECRETS, empty)
    setup.server(auth={"bearer": {"secretRef": {"name": "mine"}}})
    await setup.reconcile(KEY)
    assert setup.names(PODS) == []
    accepted = setup.status()["conditions"][0]
    assert (accepted["type"], accepted["status"], accepted["reason"]) == ("Accepted", "False", "InvalidToken")
    assert accepted["message"] == (
        'spec.auth.bearer.secretRef: Secret "mine": the value of its key "token" is empty: put a token there'
    )
    setup.cache.put(SECRETS, setup.kube.store(SECRETS, {**empty, "data": {"token": "dG9rZW4="}}))
    await setup.reconcile(KEY)
    assert setup.names(PODS) == ["mcp-time-1"]


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


async def test_a_pod_that_went_unseen_is_missed_as_soon_as_its_relay_does_not_answer(setup: Setup) -> None:
    setup.server()
    await setup.reconcile(KEY)
    setup.kube.objects[PODS].pop("mcp-time-1")
    await setup.reconcile(KEY)
    assert setup.names(PODS) == []
    setup.view = RelayView(failures=1, message="refused")
    await setup.reconcile(KEY)
    assert setup.names(PODS) == ["mcp-time-2"]


async def test_an_api_server_that_does_not_tell_about_the_pod_changes_nothing(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup.server()
    await setup.reconcile(KEY)
    setup.view = RelayView(failures=1, message="refused")

    async def away(*_: Any) -> None:
        raise UnavailableError("away")

    monkeypatch.setattr(setup.kube, "read", away)
    await setup.reconcile(KEY)
    assert setup.names(PODS) == ["mcp-time-1"]


def serving(pod: dict[str, Any], relay: dict[str, Any]) -> dict[str, Any]:
    """The pod with its status: the server runs, the relay is in this state."""
    ready = "True" if "running" in relay else "False"
    status = {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "conditions": [{"type": "Ready", "status": ready}, {"type": "PodScheduled", "status": "True"}],
        "initContainerStatuses": [{"name": "relay", "restartCount": 1, "state": relay}],
        "containerStatuses": [
            {"name": "server", "restartCount": 0, "state": {"running": {"startedAt": "2026-01-31T11:59:00Z"}}}
        ],
    }
    return {**pod, "status": status}


async def test_a_relay_that_serves_again_is_believed_though_the_watch_lags(setup: Setup, world: Any) -> None:
    setup.server()
    await setup.reconcile(KEY)
    setup.view = RelayView(world.report())
    running = {"running": {"startedAt": "2026-01-31T11:59:00Z"}}
    ended = {"terminated": {"exitCode": 137, "finishedAt": "2026-01-31T11:59:59Z"}}
    setup.cache.put(PODS, setup.kube.store(PODS, serving(setup.kube.objects[PODS]["mcp-time-1"], ended)))
    due = await setup.reconcile(KEY)
    assert setup.status()["phase"] != "Connected"
    assert due is not None
    assert due <= 1
    setup.kube.store(PODS, serving(setup.kube.objects[PODS]["mcp-time-1"], running))  # and no event tells
    await setup.reconcile(KEY)
    assert setup.status()["phase"] == "Connected"
