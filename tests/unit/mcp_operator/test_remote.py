"""A server that runs somewhere else: its pod, and what is decided about it."""

import json
import re
from typing import Any

import pytest

from mcp_operator.adapters.kinds import PODS
from mcp_operator.core import pod as pods
from mcp_operator.core.api import MCPServerSpec, Phase, Reason, RecoveryAction
from mcp_operator.core.api.remote import URL
from mcp_operator.core.decide import decide
from mcp_operator.core.observation import ContainerState, RelayView
from mcp_operator.core.plan import Plan
from mcp_operator.core.rules.remote import inside
from mcp_operator.manifests import names, pod, references
from mcp_operator.manifests.identity import Owner
from mcp_operator.manifests.references import Reference
from mcp_operator.settings import Settings
from mcp_relay_api import paths

Json = dict[str, Any]
OWNER = Owner("far", "default", "uid-1")
SETTINGS = Settings(relay_image="relay:1", runtime_image="runtime:1", image_pull_policy="IfNotPresent")
REMOTE: Json = {
    "url": "https://mcp.example.com/mcp",
    "headersFrom": [
        {"name": "Authorization", "prefix": "Bearer ", "secretKeyRef": {"name": "s", "key": "token"}},
        {"name": "X-Team", "configMapKeyRef": {"name": "c", "key": "team"}},
    ],
    "caBundleFrom": {"configMapKeyRef": {"name": "ca", "key": "ca.crt"}},
}


def spec(**changes: Any) -> MCPServerSpec:
    return MCPServerSpec.parse({"remote": {**REMOTE, **changes}})


def built() -> Json:
    found: Json = pod.build(pod.template(OWNER, spec(), SETTINGS), OWNER, 1, "a.b", {})["spec"]
    return found


def test_its_pod_is_the_relay_alone_which_the_node_starts_again() -> None:
    made = built()
    assert [container["name"] for container in made["containers"]] == ["relay"]
    assert "initContainers" not in made
    assert made["restartPolicy"] == "Always"
    (relay,) = made["containers"]
    assert {"restartPolicy", "lifecycle"} & relay.keys() == set()
    assert relay["livenessProbe"]
    assert relay["resources"]["limits"]["memory"]
    assert {volume["name"] for volume in made["volumes"]} == {"state", "secrets"}
    assert {mount["name"] for mount in relay["volumeMounts"]} == {"state", "secrets"}


def test_what_the_relay_is_told_names_files_and_no_value() -> None:
    (relay,) = built()["containers"]
    (told,) = [json.loads(item["value"]) for item in relay["env"] if item["name"] == paths.ENV_REMOTE]
    assert told == {
        "url": "https://mcp.example.com/mcp",
        "transport": "Auto",
        "headers": [
            {"name": "Authorization", "prefix": "Bearer ", "file": "remote-header-0"},
            {"name": "X-Team", "prefix": "", "file": "remote-header-1"},
        ],
        "caFile": "remote-ca.crt",
        "backoffSeconds": [2, 4, 8],
        "retryAfterErrorSeconds": 300,
    }


def test_the_files_come_from_the_secrets_and_config_maps_that_the_spec_names() -> None:
    (volume,) = [volume for volume in built()["volumes"] if volume["name"] == "secrets"]
    own, *others = volume["projected"]["sources"]
    assert own["secret"]["name"] == names.service("far")
    assert others == [
        {"secret": {"name": "s", "items": [{"key": "token", "path": "remote-header-0"}]}},
        {"configMap": {"name": "c", "items": [{"key": "team", "path": "remote-header-1"}]}},
        {"configMap": {"name": "ca", "items": [{"key": "ca.crt", "path": "remote-ca.crt"}]}},
    ]


def test_they_are_references_so_that_a_change_means_another_pod() -> None:
    assert references.find(spec()) == (
        Reference("Secret", "s", "spec.remote.headersFrom[0].secretKeyRef", ("token",)),
        Reference("ConfigMap", "c", "spec.remote.headersFrom[1].configMapKeyRef", ("team",)),
        Reference("ConfigMap", "ca", "spec.remote.caBundleFrom.configMapKeyRef", ("ca.crt",)),
    )


def raw(*states: Json) -> Json:
    statuses = [{"name": "relay", "restartCount": 0, **state} for state in states]
    return {
        "metadata": {"name": "mcp-far-1", "uid": "u"},
        "spec": {"nodeName": "node"},
        "status": {"phase": "Running", "containerStatuses": statuses},
    }


RUNS: Json = {"running": {"startedAt": "2026-01-31T11:59:00Z"}}
ENDED: Json = {"terminated": {"exitCode": 1, "finishedAt": "2026-01-31T11:59:30Z"}}


@pytest.mark.parametrize(
    ("state", "server", "relay"),
    [
        ({"state": RUNS}, ContainerState.RUNNING, ContainerState.RUNNING),
        ({"state": ENDED}, ContainerState.RUNNING, ContainerState.TERMINATED),
        (
            {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ENDED},
            ContainerState.RUNNING,
            ContainerState.WAITING,
        ),
        ({"state": {"waiting": {"reason": "ErrImagePull"}}}, ContainerState.WAITING, ContainerState.WAITING),
    ],
)
def test_a_remote_server_counts_as_running_once_its_relay_has(
    state: Json, server: ContainerState, relay: ContainerState
) -> None:
    found = pods.facts(raw(state))
    assert (found.server.state, found.relay.state) == (server, relay)


def error(phase: str, reason: str) -> Json:
    return {"phase": phase, "reason": reason, "message": f"The server cannot be used: {reason}"}


def decided(world: Any, state: str, reason: str = "", phase: str = "Transport", **changes: Any) -> Plan:
    told = {"error": error(phase, reason)} if reason else {}
    view = world.connecting(3600, state=state, **told)
    fields = {"spec": spec(), "relay": view, **changes}
    return decide(world.seen(**fields))


@pytest.mark.parametrize("state", ["Connecting", "Dropped"])
@pytest.mark.parametrize("reason", ["RemoteUnreachable", "RemoteUnavailable", "SessionLost"])
def test_a_remote_server_that_is_away_costs_neither_pod_nor_retry(
    world: Any, state: str, reason: str
) -> None:
    plan = decided(world, state, reason)
    assert plan.phase in {Phase.CONNECTING, Phase.RECONNECTING}
    assert (plan.action, plan.reason) == (RecoveryAction.WAIT, Reason(reason))
    assert plan.failure is not None
    assert plan.failure.phase == "Transport"
    assert plan.budget.failures == 0
    assert (plan.create_epoch, plan.delete, plan.reconnect) == (None, (), False)


@pytest.mark.parametrize("state", ["Connecting", "Dropped", "Refused"])
@pytest.mark.parametrize("reason", ["RemoteDenied", "RemoteRefused"])
def test_one_that_refuses_is_an_error_and_costs_neither_pod_nor_retry(
    world: Any, state: str, reason: str
) -> None:
    plan = decided(world, state, reason, phase="Initialize")
    assert (plan.phase, plan.action, plan.reason) == (Phase.ERROR, RecoveryAction.GIVE_UP, Reason(reason))
    assert plan.failure is not None
    assert plan.failure.phase == "Initialize"
    assert plan.budget.failures == 0
    assert plan.create_epoch is None


def test_one_that_refuses_initialize_is_no_reason_for_another_pod(world: Any) -> None:
    plan = decided(world, "Refused", "InitializeRefused", phase="Initialize")
    assert (plan.phase, plan.reason, plan.create_epoch) == (Phase.ERROR, Reason.INITIALIZE_FAILED, None)


def test_its_first_answer_is_awaited_without_a_deadline(world: Any) -> None:
    plan = decided(world, "Connecting")
    assert (plan.phase, plan.create_epoch) == (Phase.CONNECTING, None)
    assert "remote server" in plan.message


def test_one_that_serves_is_connected(world: Any) -> None:
    plan = decide(world.seen(spec=spec(), relay=RelayView(world.report())))
    assert plan.phase is Phase.CONNECTED


def test_an_address_of_the_cluster_behind_the_default_policy_is_hinted_at(world: Any) -> None:
    url = "http://far.other.svc/mcp"
    plan = decided(world, "Connecting", "RemoteUnreachable", spec=spec(url=url))
    assert "spec.network.egress" in plan.message
    assert "spec.network.egress" not in decided(world, "Connecting", "RemoteUnreachable").message
    everywhere = MCPServerSpec.parse({"remote": {"url": url}, "network": {"egress": "All"}})
    assert "spec.network" not in decided(world, "Connecting", "RemoteUnreachable", spec=everywhere).message


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://far/mcp", True),
        ("http://far.other.svc/mcp", True),
        ("http://far.other.svc.cluster.local.:8080/mcp", True),
        ("http://10.0.0.7:8080/mcp", True),
        ("http://[fd00::1]/mcp", True),
        ("https://mcp.example.com/mcp", False),
        ("https://8.8.8.8/mcp", False),
    ],
)
def test_which_hosts_look_like_the_cluster_s_own(url: str, expected: bool) -> None:
    assert inside(url) is expected


async def test_a_remote_server_becomes_ready_whatever_memory_keeps_of_its_pod(setup: Any, world: Any) -> None:
    setup.server(command=[], remote={"url": "https://mcp.example.com/mcp"})
    await setup.reconcile(("default", "time"))
    made = setup.kube.objects[PODS]["mcp-time-1"]
    statuses = [{"name": "relay", "restartCount": 0, "ready": True, "state": RUNS}]
    ready = [{"type": "Ready", "status": "True"}]
    made["status"] = {"phase": "Running", "containerStatuses": statuses, "conditions": ready}
    setup.cache.put(PODS, setup.kube.store(PODS, made))
    setup.view = RelayView(world.report())
    await setup.reconcile(("default", "time"))
    assert setup.status()["phase"] == "Connected"
    assert "image" not in setup.status()


@pytest.mark.parametrize(
    ("url", "accepted"),
    [
        ("https://mcp.example.com/mcp", True),
        ("http://far:8080?x=1", True),
        ("http://far.other.svc./mcp", True),
        ("http://[::1]:8080/mcp", True),
        ("http://a..b/mcp", False),
        ("http://.a/mcp", False),
        (f"http://{'a' * 63}.example.com", True),
        (f"http://{'a' * 64}.example.com", False),
        ("http://a:b/mcp", False),
    ],
)
def test_a_url_whose_host_no_resolver_takes_is_refused(url: str, accepted: bool) -> None:
    assert (re.fullmatch(URL, url) is not None) is accepted
