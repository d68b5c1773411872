"""The decision table: a pod whose containers do not run yet.

A healthy server, what is changed, and the plan as it prints itself.
"""

from collections.abc import Callable
from typing import Any

import pytest

from mcp_operator.core.api import ErrorPhase
from mcp_operator.core.observation import MissingReference, RelayView
from mcp_operator.core.rules import pending

Json = dict[str, Any]
Change = Callable[[Any], Json]


def missing(**more: Any) -> tuple[MissingReference, ...]:
    return (MissingReference("Secret", "keys", "spec.env[0].valueFrom.secretKeyRef", **more),)


# The kubelet's words: pkg/kubelet/kuberuntime/security_context.go
NAMED_USER = "container has runAsNonRoot and image has non-numeric user (mcp), cannot verify user is non-root"


CASES: list[tuple[str, Change, str, ErrorPhase | None]] = [
    (
        "a pod that waits for a node is waited for",
        lambda w: {"pods": (w.pending(scheduled=False),), "relay": RelayView()},
        "on-its-way: Wait -> Pending (PodPending)",
        None,
    ),
    (
        "a pod being made is waited for, and its events are looked at if it stays silent",
        lambda w: {"pods": (w.pending(),), "relay": RelayView()},
        "on-its-way: Wait -> Pending (PodPending) again=12:00:03",
        None,
    ),
    (
        "an unschedulable pod shows the scheduler's message",
        lambda w: {"pods": (w.pending(scheduled=False, unschedulable="0/1 nodes: Insufficient cpu"),)},
        "unschedulable: Wait -> Pending (Unschedulable)",
        ErrorPhase.SCHEDULING,
    ),
    (
        "an image that cannot be pulled is waited for",
        lambda w: {"pods": (w.pending(w.waiting("ErrImagePull", "not found")),)},
        "held-up: Wait -> Pending (ImagePullFailed)",
        ErrorPhase.IMAGE_PULL,
    ),
    (
        "the back-off of a pull is the same state",
        lambda w: {"pods": (w.pending(w.waiting("ImagePullBackOff", 'Back-off pulling image "x"')),)},
        "held-up: Wait -> Pending (ImagePullFailed)",
        ErrorPhase.IMAGE_PULL,
    ),
    (
        "a relay image that cannot be pulled is waited for too",
        lambda w: {"pods": (w.pending(relay=w.waiting("ImagePullBackOff", "no")),)},
        "held-up: Wait -> Pending (ImagePullFailed)",
        ErrorPhase.IMAGE_PULL,
    ),
    (
        "a relay that fails before the server starts is named, not the server",
        lambda w: {"pods": (w.pending(relay=w.waiting("CrashLoopBackOff", "back-off", last=w.ending(2))),)},
        "held-up: Wait -> Pending (RelayFailed)",
        ErrorPhase.CONTAINER_START,
    ),
    (
        "a missing Secret is waited for",
        lambda w: {
            "pods": (w.pending(w.waiting("CreateContainerConfigError", 'secret "keys" not found')),),
            "missing": missing(),
        },
        "held-up: Wait -> Pending (SecretNotFound)",
        ErrorPhase.CONTAINER_START,
    ),
    (
        "a missing key of a Secret is told apart",
        lambda w: {
            "pods": (w.pending(w.waiting("CreateContainerConfigError", "couldn't find key a")),),
            "missing": missing(key="a"),
        },
        "held-up: Wait -> Pending (SecretKeyNotFound)",
        ErrorPhase.CONTAINER_START,
    ),
    (
        "a volume that cannot be mounted is waited for",
        lambda w: {"pods": (w.pending(),), "mount_error": "configmap references non-existent key"},
        "held-up: Wait -> Pending (ContainerCreateFailed)",
        ErrorPhase.CONTAINER_START,
    ),
    (
        "a bad image name is an error without retries",
        lambda w: {"pods": (w.pending(w.waiting("InvalidImageName", "couldn't parse")),)},
        "pending-for-good: GiveUp -> Error (InvalidImageName)",
        ErrorPhase.IMAGE_PULL,
    ),
    (
        "an image that must not be pulled and is not there is an error without retries",
        lambda w: {"pods": (w.pending(w.waiting("ErrImageNeverPull", "not present")),)},
        "pending-for-good: GiveUp -> Error (InvalidImageName)",
        ErrorPhase.IMAGE_PULL,
    ),
    (
        "a root user that is refused is an error without retries",
        lambda w: {
            "pods": (
                w.pending(w.waiting("CreateContainerConfigError", "container has runAsNonRoot and image")),
            )
        },
        "pending-for-good: GiveUp -> Error (ContainerCreateFailed)",
        ErrorPhase.CONTAINER_START,
    ),
    (
        "so is a user that the image gives by name, so that nobody can tell whether it is root",
        lambda w: {"pods": (w.pending(w.waiting("CreateContainerConfigError", NAMED_USER)),)},
        "pending-for-good: GiveUp -> Error (ContainerCreateFailed)",
        ErrorPhase.CONTAINER_START,
    ),
    (
        "a container that cannot be made is an error without retries",
        lambda w: {"pods": (w.pending(w.waiting("CreateContainerError", "bad mount")),)},
        "pending-for-good: GiveUp -> Error (ContainerCreateFailed)",
        ErrorPhase.CONTAINER_START,
    ),
    (
        "a sandbox that no node can make is an error at once",
        lambda w: {"pods": (w.pending(),), "sandbox_error": 'no runtime for "kata" is configured'},
        "pending-for-good: GiveUp -> Error (SandboxFailed)",
        ErrorPhase.SANDBOX,
    ),
]


@pytest.mark.parametrize(
    ("change", "plan", "error"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_decision(decided: Callable[..., None], change: Change, plan: str, error: ErrorPhase | None) -> None:
    decided(change, plan, error)


@pytest.mark.parametrize(
    ("change", "silent"),
    [
        ({}, False),
        ({"created_at": 5}, True),
        ({"created_at": 5, "sandbox_ready": True}, False),
        ({"created_at": 5, "scheduled": False}, False),
        ({"created_at": 5, "deleting": True}, False),
    ],
    ids=str,
)
def test_the_events_of_a_pod_are_read_only_while_its_node_keeps_silent(
    world: Any, change: Json, silent: bool
) -> None:
    made = {**change, "created_at": world.ago(change.get("created_at", 1))}
    assert pending.silent(world.pending(**made), world.now.timestamp()) is silent
