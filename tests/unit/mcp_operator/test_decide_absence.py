"""The decision table: a pod that is not there, goes away or is outdated.

A healthy server, what is changed, and the plan as it prints itself.
"""

from collections.abc import Callable
from typing import Any

import pytest

from mcp_operator.core.api import ErrorPhase, MCPServerStatus, Reason
from mcp_operator.core.api.status import ServerError
from mcp_operator.core.observation import MissingReference, RelayView

Json = dict[str, Any]
Change = Callable[[Any], Json]


def missing(**more: Any) -> tuple[MissingReference, ...]:
    return (MissingReference("Secret", "keys", "spec.env[0].valueFrom.secretKeyRef", **more),)


def spent(w: Any, **more: Any) -> MCPServerStatus:
    error = ServerError(
        phase=ErrorPhase.PROCESS, reason=Reason.PROCESS_EXITED, message="it failed", time=w.ago(5)
    )
    found: MCPServerStatus = w.status(
        **{"consecutive_failures": 4, "failed_epoch": 1, "error": error, **more}
    )
    return found


CASES: list[tuple[str, Change, str, ErrorPhase | None]] = [
    (
        "no pod: it is created under the next number",
        lambda w: {"pods": (), "relay": RelayView()},
        "no-pod: Create -> Pending (Created): create epoch 2",
        None,
    ),
    (
        "the names of a deleted resource's pods are not used again",
        lambda w: {"pods": (), "status": MCPServerStatus(), "predecessor_epoch": 4},
        "no-pod: Create -> Pending (Created): create epoch 5",
        None,
    ),
    (
        "the very first pod has number 1",
        lambda w: {"pods": (), "status": MCPServerStatus()},
        "no-pod: Create -> Pending (Created): create epoch 1",
        None,
    ),
    (
        "no pod while the backoff runs: the next attempt is waited for",
        lambda w: {
            "pods": (),
            "status": w.status(consecutive_failures=1, failed_epoch=1, next_attempt_time=w.later(2)),
        },
        "waits-for-next-attempt: Recreate -> Recreating (BackingOff) failures=1 again=12:00:02",
        None,
    ),
    (
        "no pod after the backoff: the attempt is made and the count kept",
        lambda w: {
            "pods": (),
            "status": w.status(consecutive_failures=1, failed_epoch=1, next_attempt_time=w.ago(0)),
        },
        "no-pod: Create -> Pending (Created) failures=1: create epoch 2",
        None,
    ),
    (
        "retries used up and slow attempts off: an absent pod stays absent",
        lambda w: {
            "pods": (),
            "spec": w.spec(recovery={"retryAfterErrorSeconds": 0}),
            "status": spent(w),
        },
        "waits-for-next-attempt: GiveUp -> Error (BackoffExhausted) failures=4",
        ErrorPhase.PROCESS,
    ),
    (
        "a slow attempt's pod that someone deleted is made again",
        lambda w: {"pods": (), "status": spent(w, epoch=2)},
        "no-pod: Create -> Pending (Created) failures=4: create epoch 3",
        None,
    ),
    (
        "after the grace of a lost node another pod is made, for free",
        lambda w: {"pods": (w.pod(phase="Unknown", unknown_since=w.ago(300)),)},
        "node-lost: Recreate -> Recreating (NodeLost): delete mcp-time-1, create epoch 2",
        None,
    ),
    (
        "a pod that someone deletes is followed by the next, for free",
        lambda w: {"pods": (w.pod(deleting=True),)},
        "deleted-by-someone: Recreate -> Recreating (PodDeleted): create epoch 2",
        None,
    ),
    (
        "a pod that ends because it is deleted has not failed",
        lambda w: {"pods": (w.pod(deleting=True, server=w.terminated(143)),)},
        "deleted-by-someone: Recreate -> Recreating (PodDeleted): create epoch 2",
        None,
    ),
    (
        "a deleted pod does not shorten a running backoff",
        lambda w: {
            "pods": (w.pod(deleting=True, server=w.terminated(1)),),
            "status": w.status(consecutive_failures=1, failed_epoch=1, next_attempt_time=w.later(2)),
        },
        "waits-for-next-attempt: Recreate -> Recreating (BackingOff) failures=1 again=12:00:02",
        None,
    ),
    (
        "another configuration gives exactly one new pod",
        lambda w: {"config_hash": "other.refs"},
        "outdated: Recreate -> Recreating (ConfigurationChanged): delete mcp-time-1, create epoch 2",
        None,
    ),
    (
        "a pod made a moment ago is not replaced at once: two operators must not fight without pause",
        lambda w: {"config_hash": "other.refs", "pods": (w.pod(created_at=w.ago(1)),)},
        "connected: None -> Connected (Connected) again=12:00:02",
        None,
    ),
    (
        "Secrets that change one after the other are taken up together",
        lambda w: {"config_hash": "spec.new", "pods": (w.pod(created_at=w.ago(1)),)},
        "connected: None -> Connected (Connected) again=12:00:02",
        None,
    ),
    (
        "a pod that does not serve and was made a moment ago is not replaced at once either",
        lambda w: {"config_hash": "spec.new", "pods": (w.pending(),)},
        "outdated: Recreate -> Recreating (ConfigurationChanged) again=12:00:02",
        None,
    ),
    (
        "the failure of a pod made a moment ago from another spec is not counted",
        lambda w: {
            "config_hash": "other.refs",
            "pods": (w.pod(created_at=w.ago(1)),),
            "relay": RelayView(
                w.report(
                    state="Exited",
                    session=None,
                    exit={"exitCode": 1, "reason": "Exited", "time": w.ago(0.5).timestamp()},
                )
            ),
        },
        "outdated: Recreate -> Recreating (ConfigurationChanged) again=12:00:02",
        None,
    ),
    (
        "a Secret that was missing is taken up at once",
        lambda w: {
            "config_hash": "spec.new",
            "config": {"the spec": "1", 'Secret "keys"': "a"},
            "pods": (w.pending(config={"the spec": "1", 'Secret "keys"': ""}),),
        },
        "outdated: Recreate -> Recreating (ConfigurationChanged): delete mcp-time-1, create epoch 2",
        None,
    ),
    (
        "an operator that was upgraded does not replace a server that could not start again",
        lambda w: {
            "config_hash": "upgraded.gone",
            "config": {"the spec": "1", 'Secret "keys"': ""},
            "missing": missing(),
            "pods": (w.pod(config={"the spec": "1", 'Secret "keys"': "a"}),),
        },
        "connected: None -> Connected (Connected)",
        None,
    ),
    (
        "an operator that was upgraded replaces a server that can start again",
        lambda w: {
            "config_hash": "upgraded.refs",
            "config": {"the spec": "1"},
            "pods": (w.pod(config={"the spec": "1"}),),
        },
        "outdated: Recreate -> Recreating (ConfigurationChanged): delete mcp-time-1, create epoch 2",
        None,
    ),
    (
        "a restart that somebody asks for is made also while a Secret is missing",
        lambda w: {
            "config_hash": "restarted.gone",
            "config": {"the spec": "1", "the annotation mcp-session.dev/restartedAt": "2"},
            "missing": missing(),
            "pods": (w.pod(config={"the spec": "1"}),),
        },
        "outdated: Recreate -> Recreating (ConfigurationChanged): delete mcp-time-1, create epoch 2",
        None,
    ),
    (
        "no pod is made with a token that cannot be used",
        lambda w: {"pods": (), "relay": RelayView(), "missing": missing(key="t", fault="is empty")},
        "unusable-token: Wait -> Pending (InvalidToken)",
        ErrorPhase.VALIDATION,
    ),
    (
        "a running server stays whatever else changed while its token cannot be used",
        lambda w: {"config_hash": "other.empty", "missing": missing(key="t", fault="is empty")},
        "connected: None -> Connected (Connected)",
        None,
    ),
    (
        "a server that ended waits for a token that can be used",
        lambda w: {
            "pods": (w.pod(server=w.terminated(1)),),
            "missing": missing(key="t", fault="is empty"),
        },
        "unusable-token: Wait -> Pending (InvalidToken)",
        ErrorPhase.VALIDATION,
    ),
    (
        "another configuration resets a used-up budget at once",
        lambda w: {
            "config_hash": "spec.other",
            "pods": (w.pod(phase="Failed", server=w.terminated(1)),),
            "status": spent(w, next_attempt_time=w.later(200)),
        },
        "outdated: Recreate -> Recreating (ConfigurationChanged): delete mcp-time-1, create epoch 2",
        None,
    ),
    (
        "a changed spec replaces the pod also while a Secret is missing",
        lambda w: {"config_hash": "other.gone", "missing": missing()},
        "outdated: Recreate -> Recreating (ConfigurationChanged): delete mcp-time-1, create epoch 2",
        None,
    ),
]


@pytest.mark.parametrize(
    ("change", "plan", "error"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_decision(decided: Callable[..., None], change: Change, plan: str, error: ErrorPhase | None) -> None:
    decided(change, plan, error)
