"""Facts about pods, read from real answers of an API server, shortened."""

from typing import Any

import pytest

from mcp_operator.core import pod
from mcp_operator.core.observation import ContainerState

Json = dict[str, Any]


def raw(**status: Any) -> Json:
    return {
        "metadata": {
            "name": "mcp-time-3", "uid": "u", "creationTimestamp": "2026-01-31T11:59:00Z",
            "labels": {"mcp-session.dev/epoch": "3"}, "annotations": {"mcp-session.dev/config-hash": "a.b"},
        },
        "spec": {"nodeName": "node"},
        "status": {"phase": "Running", "podIP": "10.0.0.1", **status},
    }  # fmt: skip


def test_a_running_pod() -> None:
    found = pod.facts(
        raw(
            conditions=[{"type": "Ready", "status": "True"}],
            initContainerStatuses=[{"name": "relay", "restartCount": 2, "state": {"running": {}}}],
            containerStatuses=[
                {
                    "name": "server",
                    "restartCount": 0,
                    "state": {"running": {"startedAt": "2026-01-31T11:59:01Z"}},
                }
            ],
        )
    )
    assert (found.epoch, found.config_hash, found.ip, found.ready, found.scheduled) == (
        3, "a.b", "10.0.0.1", True, True,
    )  # fmt: skip
    assert found.relay.running
    assert found.relay.restarts == 2
    assert found.server.started_at is not None
    assert not found.deleting


def test_a_terminated_server_with_its_message() -> None:
    ended = {"exitCode": 137, "reason": "OOMKilled", "message": "{}", "finishedAt": "2026-01-31T12:00:00Z"}
    found = pod.facts(raw(containerStatuses=[{"name": "server", "state": {"terminated": ended}}])).server
    assert (found.terminated, found.exit_code, found.reason) == (True, 137, "OOMKilled")


def test_a_pod_just_made_has_no_containers_yet() -> None:
    found = pod.facts({"metadata": {"name": "x", "uid": "u"}})
    assert (found.phase, found.server.state, found.epoch, found.scheduled) == (
        "Pending", ContainerState.ABSENT, 0, False,
    )  # fmt: skip


def test_a_container_without_a_state_is_waiting() -> None:
    assert pod.facts(raw(containerStatuses=[{"name": "server"}])).server.state is ContainerState.WAITING


def test_the_schedulers_message() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no cpu"}
    assert pod.facts(raw(conditions=[condition])).unschedulable == "no cpu"


@pytest.mark.parametrize("phase", ["Unknown", "Running"])
def test_a_node_that_does_not_report(phase: str) -> None:
    condition = {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-01-31T11:00:00Z"}
    assert pod.facts(raw(phase=phase, conditions=[condition])).unknown_since is not None


@pytest.mark.parametrize(("seconds", "grace"), [(60, 60.0), (None, float("inf"))])
def test_the_grace_of_the_unreachable_node_is_the_pods_own(seconds: int | None, grace: float) -> None:
    made = raw()
    toleration = {
        "key": "node.kubernetes.io/unreachable",
        "effect": "NoExecute",
        "tolerationSeconds": seconds,
    }
    made["spec"]["tolerations"] = [{k: v for k, v in toleration.items() if v is not None}]
    assert pod.facts(made).node_grace_seconds == grace
    assert pod.facts(raw()).node_grace_seconds == 300


@pytest.mark.parametrize(("label", "epoch"), [("", 0), ("x", 0), ("-1", 0), ("12", 12), ("9" * 63, 0)])
def test_an_epoch_that_somebody_wrote_over_counts_as_none(label: str, epoch: int) -> None:
    found = raw()
    found["metadata"]["labels"]["mcp-session.dev/epoch"] = label
    assert pod.facts(found).epoch == epoch
