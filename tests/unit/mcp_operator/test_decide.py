"""The decision table, row by row: a healthy server, what is changed, what must follow."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import pytest

from mcp_operator.core.api import ErrorPhase, MCPServerStatus, Phase, Reason, RecoveryAction
from mcp_operator.core.api.status import ServerError
from mcp_operator.core.decide import ROWS, decide
from mcp_operator.core.observation import MissingReference, Observation, PodFacts, RelayView
from mcp_relay_api.status import RelayStatus

NONE, WAIT, CREATE = RecoveryAction.NONE, RecoveryAction.WAIT, RecoveryAction.CREATE
RECONNECT, RECREATE, GIVE_UP = RecoveryAction.RECONNECT, RecoveryAction.RECREATE, RecoveryAction.GIVE_UP
Json = dict[str, Any]


class Worldly(Protocol):
    """What these tests use of the world fixture."""

    now: Any

    def seen(self, **changes: Any) -> Observation: ...
    def pod(self, **changes: Any) -> PodFacts: ...
    def pending(self, *args: Any, **changes: Any) -> PodFacts: ...
    def waiting(self, reason: str, message: str = "") -> Any: ...
    def terminated(self, code: int, reason: str = "", message: str = "") -> Any: ...
    def running(self, seconds: float = 60) -> Any: ...
    def report(self, **changes: Any) -> RelayStatus: ...
    def connecting(self, seconds: float = 1, **changes: Any) -> RelayView: ...
    def status(self, **recovery: Any) -> MCPServerStatus: ...
    def spec(self, **fields: Any) -> Any: ...
    def ago(self, seconds: float) -> Any: ...
    def later(self, seconds: float) -> Any: ...


class Case(NamedTuple):
    """One sentence, what differs from a healthy server, and what must be decided."""

    sentence: str
    change: Callable[[Worldly], Json]
    rule: str
    action: RecoveryAction
    phase: Phase
    reason: Reason
    failures: int = 0
    again: float | None = None
    creates: int | None = None
    deletes: tuple[str, ...] = ()
    error: ErrorPhase | None = None
    reconnects: bool = False


def exited(code: int = 1, **more: Any) -> Json:
    return {"exitCode": code, "reason": "Exited", "time": 1_769_860_799.0, **more}


def missing(**more: Any) -> tuple[MissingReference, ...]:
    return (MissingReference("Secret", "keys", "spec.env[0].valueFrom.secretKeyRef", **more),)


def failed(phase: ErrorPhase, reason: Reason, time: Any) -> ServerError:
    return ServerError(phase=phase, reason=reason, message="it failed", time=time)


def spent(w: Worldly, **more: Any) -> MCPServerStatus:
    error = failed(ErrorPhase.PROCESS, Reason.PROCESS_EXITED, w.ago(5))
    return w.status(**{"consecutive_failures": 4, "failed_epoch": 1, "error": error, **more})


CASES = [
    # What is asked for
    Case(
        "a resource that is being deleted gets nothing new",
        lambda w: {"deleting": True, "pods": ()},
        "terminating", NONE, Phase.TERMINATING, Reason.TERMINATING,
    ),
    Case(
        "a spec that cannot be read leaves the pod alone",
        lambda w: {"invalid": "spec.env: no list"},
        "invalid-spec", GIVE_UP, Phase.ERROR, Reason.INVALID_SPEC, error=ErrorPhase.VALIDATION,
    ),
    Case(
        "a suspended server loses its pod",
        lambda w: {"spec": w.spec(suspend=True)},
        "suspended", NONE, Phase.SUSPENDED, Reason.SUSPENDED, deletes=("mcp-time-1",),
    ),
    Case(
        "a suspended server without a pod needs nothing",
        lambda w: {"spec": w.spec(suspend=True), "pods": ()},
        "suspended", NONE, Phase.SUSPENDED, Reason.SUSPENDED,
    ),
    Case(
        "a foreign object with a child's name is left alone",
        lambda w: {"conflict": 'the Service "mcp-time" belongs to someone else', "pods": ()},
        "foreign-object", GIVE_UP, Phase.ERROR, Reason.OWNERSHIP_CONFLICT, again=30, error=ErrorPhase.VALIDATION,
    ),
    # None
    Case(
        "no pod: it is created under the next number",
        lambda w: {"pods": (), "relay": RelayView()},
        "no-pod", CREATE, Phase.PENDING, Reason.CREATED, creates=2,
    ),
    Case(
        "the very first pod has number 1",
        lambda w: {"pods": (), "status": MCPServerStatus()},
        "no-pod", CREATE, Phase.PENDING, Reason.CREATED, creates=1,
    ),
    Case(
        "no pod while the backoff runs: the next attempt is waited for",
        lambda w: {
            "pods": (),
            "status": w.status(consecutive_failures=1, failed_epoch=1, next_attempt_time=w.later(2)),
        },
        "waits-for-next-attempt", RECREATE, Phase.RECREATING, Reason.BACKING_OFF, failures=1, again=2,
    ),
    Case(
        "no pod after the backoff: the attempt is made and the count kept",
        lambda w: {
            "pods": (),
            "status": w.status(consecutive_failures=1, failed_epoch=1, next_attempt_time=w.ago(0)),
        },
        "no-pod", CREATE, Phase.PENDING, Reason.CREATED, failures=1, creates=2,
    ),
    Case(
        "an operator that was away longer than the backoff goes on at once",
        lambda w: {
            "pods": (w.pod(phase="Failed", server=w.terminated(1)),),
            "status": w.status(consecutive_failures=2, failed_epoch=1, next_attempt_time=w.ago(300)),
        },
        "pod-ended", RECREATE, Phase.RECREATING, Reason.PROCESS_EXITED, failures=2, creates=2,
        deletes=("mcp-time-1",),
    ),
    Case(
        "retries used up and slow attempts off: an absent pod stays absent",
        lambda w: {
            "pods": (),
            "spec": w.spec(recovery={"retryAfterErrorSeconds": 0}),
            "status": spent(w),
        },
        "waits-for-next-attempt", GIVE_UP, Phase.ERROR, Reason.BACKOFF_EXHAUSTED, failures=4,
    ),
    Case(
        "a slow attempt's pod that someone deleted is made again",
        lambda w: {"pods": (), "status": spent(w, epoch=2)},
        "no-pod", CREATE, Phase.PENDING, Reason.CREATED, failures=4, creates=3,
    ),
    # Pending, scheduled or pulling
    Case(
        "a pod that waits for a node is waited for",
        lambda w: {"pods": (w.pending(scheduled=False),), "relay": RelayView()},
        "on-its-way", WAIT, Phase.PENDING, Reason.POD_PENDING,
    ),
    Case(
        "a pod being made is waited for, and its events are looked at if it stays silent",
        lambda w: {"pods": (w.pending(),), "relay": RelayView()},
        "on-its-way", WAIT, Phase.PENDING, Reason.POD_PENDING, again=3,
    ),
    Case(
        "an unschedulable pod shows the scheduler's message",
        lambda w: {"pods": (w.pending(scheduled=False, unschedulable="0/1 nodes: Insufficient cpu"),)},
        "unschedulable", WAIT, Phase.PENDING, Reason.UNSCHEDULABLE, error=ErrorPhase.SCHEDULING,
    ),
    Case(
        "an image that cannot be pulled is waited for",
        lambda w: {"pods": (w.pending(w.waiting("ErrImagePull", "not found")),)},
        "held-up", WAIT, Phase.PENDING, Reason.IMAGE_PULL_FAILED, error=ErrorPhase.IMAGE_PULL,
    ),
    Case(
        "the back-off of a pull is the same state",
        lambda w: {"pods": (w.pending(w.waiting("ImagePullBackOff", 'Back-off pulling image "x"')),)},
        "held-up", WAIT, Phase.PENDING, Reason.IMAGE_PULL_FAILED, error=ErrorPhase.IMAGE_PULL,
    ),
    Case(
        "a relay image that cannot be pulled is waited for too",
        lambda w: {"pods": (w.pending(relay=w.waiting("ImagePullBackOff", "no")),)},
        "held-up", WAIT, Phase.PENDING, Reason.IMAGE_PULL_FAILED, error=ErrorPhase.IMAGE_PULL,
    ),
    Case(
        "a missing Secret is waited for",
        lambda w: {
            "pods": (w.pending(w.waiting("CreateContainerConfigError", 'secret "keys" not found')),),
            "missing": missing(),
        },
        "held-up", WAIT, Phase.PENDING, Reason.SECRET_NOT_FOUND, error=ErrorPhase.CONTAINER_START,
    ),
    Case(
        "a missing key of a Secret is told apart",
        lambda w: {
            "pods": (w.pending(w.waiting("CreateContainerConfigError", "couldn't find key a")),),
            "missing": missing(key="a"),
        },
        "held-up", WAIT, Phase.PENDING, Reason.SECRET_KEY_NOT_FOUND, error=ErrorPhase.CONTAINER_START,
    ),
    Case(
        "a volume that cannot be mounted is waited for",
        lambda w: {"pods": (w.pending(),), "mount_error": "configmap references non-existent key"},
        "held-up", WAIT, Phase.PENDING, Reason.CONTAINER_CREATE_FAILED, error=ErrorPhase.CONTAINER_START,
    ),
    # Pending for good
    Case(
        "a bad image name is an error without retries",
        lambda w: {"pods": (w.pending(w.waiting("InvalidImageName", "couldn't parse")),)},
        "pending-for-good", GIVE_UP, Phase.ERROR, Reason.INVALID_IMAGE_NAME, error=ErrorPhase.IMAGE_PULL,
    ),
    Case(
        "an image that must not be pulled and is not there is an error without retries",
        lambda w: {"pods": (w.pending(w.waiting("ErrImageNeverPull", "not present")),)},
        "pending-for-good", GIVE_UP, Phase.ERROR, Reason.INVALID_IMAGE_NAME, error=ErrorPhase.IMAGE_PULL,
    ),
    Case(
        "a root user that is refused is an error without retries",
        lambda w: {
            "pods": (w.pending(w.waiting("CreateContainerConfigError", "container has runAsNonRoot and image")),)
        },
        "pending-for-good", GIVE_UP, Phase.ERROR, Reason.CONTAINER_CREATE_FAILED,
        error=ErrorPhase.CONTAINER_START,
    ),
    Case(
        "a container that cannot be made is an error without retries",
        lambda w: {"pods": (w.pending(w.waiting("CreateContainerError", "bad mount")),)},
        "pending-for-good", GIVE_UP, Phase.ERROR, Reason.CONTAINER_CREATE_FAILED,
        error=ErrorPhase.CONTAINER_START,
    ),
    Case(
        "a sandbox that no node can make is an error at once",
        lambda w: {"pods": (w.pending(),), "sandbox_error": 'no runtime for "kata" is configured'},
        "pending-for-good", GIVE_UP, Phase.ERROR, Reason.SANDBOX_FAILED, error=ErrorPhase.SANDBOX,
    ),
    # Running, connecting
    Case(
        "a process that starts is waited for until its deadline",
        lambda w: {"pods": (w.pod(ready=False, server=w.running(30)),), "relay": w.connecting(30)},
        "cold-start", WAIT, Phase.CONNECTING, Reason.INITIALIZING, again=90,
    ),
    Case(
        "a relay that was not heard yet is no failure",
        lambda w: {"relay": RelayView()},
        "cold-start", WAIT, Phase.CONNECTING, Reason.INITIALIZING,
    ),
    Case(
        "a start that takes longer than its deadline costs a retry",
        lambda w: {"pods": (w.pod(server=w.running(120)),), "relay": w.connecting(120)},
        "startup-deadline-passed", RECREATE, Phase.RECREATING, Reason.BACKING_OFF, failures=1, again=2,
        error=ErrorPhase.INITIALIZE,
    ),
    Case(
        "a restarted relay that connects anew has the whole deadline",
        lambda w: {"pods": (w.pod(server=w.running(4000)),), "relay": w.connecting(5)},
        "cold-start", WAIT, Phase.CONNECTING, Reason.INITIALIZING, again=115,
    ),
    Case(
        "a refused initialize costs a retry",
        lambda w: {
            "relay": RelayView(
                w.report(
                    state="Refused",
                    session=None,
                    error={"phase": "Initialize", "reason": "Error", "message": "no such method"},
                )
            )
        },
        "initialize-refused", RECREATE, Phase.RECREATING, Reason.BACKING_OFF, failures=1, again=2,
        error=ErrorPhase.INITIALIZE,
    ),
    # Running, transport dropped
    Case(
        "a dropped transport is given a second",
        lambda w: {"relay": RelayView(w.report(state="Dropped", session=None, since=w.ago(0.4).timestamp()))},
        "dropped", WAIT, Phase.RECONNECTING, Reason.TRANSPORT_DROPPED, again=0.6, error=ErrorPhase.TRANSPORT,
    ),
    Case(
        "a transport dropped for a second is reconnected, nothing is killed",
        lambda w: {"relay": RelayView(w.report(state="Dropped", session=None, since=w.ago(1).timestamp()))},
        "dropped", RECONNECT, Phase.RECONNECTING, Reason.TRANSPORT_DROPPED, again=5, reconnects=True,
        error=ErrorPhase.TRANSPORT,
    ),
    Case(
        "a transport that cannot be restored for the whole deadline is a failure",
        lambda w: {
            "pods": (w.pod(server=w.running(900)),),
            "relay": RelayView(w.report(state="Dropped", session=None, since=w.ago(121).timestamp())),
        },
        "startup-deadline-passed", RECREATE, Phase.RECREATING, Reason.BACKING_OFF, failures=1, again=2,
        error=ErrorPhase.TRANSPORT,
    ),
    # Running, unreachable
    Case(
        "an unreachable relay is waited for, 1st time",
        lambda w: {"relay": RelayView(w.report(), failures=1, message="refused")},
        "unreachable", WAIT, Phase.RECONNECTING, Reason.RELAY_UNREACHABLE, again=5, error=ErrorPhase.TRANSPORT,
    ),
    Case(
        "an unreachable relay is waited for, 2nd time",
        lambda w: {"relay": RelayView(w.report(), failures=2, message="refused")},
        "unreachable", WAIT, Phase.RECONNECTING, Reason.RELAY_UNREACHABLE, again=5, error=ErrorPhase.TRANSPORT,
    ),
    Case(
        "an unreachable relay is reconnected, 3rd time, and the server stays",
        lambda w: {"relay": RelayView(w.report(), failures=3, message="refused")},
        "unreachable-for-long", RECONNECT, Phase.RECONNECTING, Reason.RELAY_UNREACHABLE, again=5, reconnects=True,
        error=ErrorPhase.TRANSPORT,
    ),
    # Running, connected
    Case(
        "a connected server needs nothing",
        lambda w: {},
        "connected", NONE, Phase.CONNECTED, Reason.CONNECTED,
    ),
    Case(
        "a session without the pod being ready is not shown as served",
        lambda w: {"pods": (w.pod(ready=False),)},
        "connected", WAIT, Phase.CONNECTING, Reason.INITIALIZED,
    ),
    Case(
        "a connected server keeps its count until it was stable for ten minutes",
        lambda w: {"status": w.status(consecutive_failures=2, failed_epoch=0)},
        "connected", NONE, Phase.CONNECTED, Reason.CONNECTED, failures=2, again=540,
    ),
    Case(
        "ten stable minutes reset the count",
        lambda w: {
            "status": w.status(consecutive_failures=2, failed_epoch=0),
            "relay": RelayView(
                w.report(
                    session={
                        "protocolVersion": "2025-11-25",
                        "serverInfo": {},
                        "capabilities": {},
                        "since": w.ago(600).timestamp(),
                        "adopted": True,
                    }
                )
            ),
        },
        "connected", NONE, Phase.CONNECTED, Reason.CONNECTED,
    ),
    Case(
        "a tool list that cannot be read is shown and waited for",
        lambda w: {
            "relay": RelayView(w.report(error={"phase": "ListTools", "reason": "Error", "message": "broken"}))
        },
        "connected", WAIT, Phase.CONNECTING, Reason.LIST_TOOLS_FAILED, error=ErrorPhase.LIST_TOOLS,
    ),
    # Running, terminated
    Case(
        "a server that ended is replaced although the phase is still Running",
        lambda w: {"pods": (w.pod(server=w.terminated(137)),)},
        "server-terminated", RECREATE, Phase.RECREATING, Reason.BACKING_OFF, failures=1, again=2,
        error=ErrorPhase.PROCESS,
    ),
    Case(
        "a server that ended with 0 has failed too",
        lambda w: {"pods": (w.pod(server=w.terminated(0)),)},
        "server-terminated", RECREATE, Phase.RECREATING, Reason.BACKING_OFF, failures=1, again=2,
        error=ErrorPhase.PROCESS,
    ),
    Case(
        "the relay's word about the end is enough",
        lambda w: {"relay": RelayView(w.report(state="Exited", session=None, exit=exited()))},
        "relay-saw-exit", RECREATE, Phase.RECREATING, Reason.BACKING_OFF, failures=1, again=2,
        error=ErrorPhase.PROCESS,
    ),
    Case(
        "a failure that was counted is not counted again",
        lambda w: {
            "pods": (w.pod(server=w.terminated(1)),),
            "status": w.status(consecutive_failures=1, failed_epoch=1, next_attempt_time=w.later(1.5)),
        },
        "server-terminated", RECREATE, Phase.RECREATING, Reason.BACKING_OFF, failures=1, again=1.5,
        error=ErrorPhase.PROCESS,
    ),
    Case(
        "when the backoff is over the pod is replaced and its remains go",
        lambda w: {
            "pods": (w.pod(server=w.terminated(1)),),
            "status": w.status(consecutive_failures=1, failed_epoch=1, next_attempt_time=w.now),
        },
        "server-terminated", RECREATE, Phase.RECREATING, Reason.PROCESS_EXITED, failures=1, creates=2,
        deletes=("mcp-time-1",),
    ),
    Case(
        "the second failure waits 4 seconds",
        lambda w: {
            "pods": (w.pod(epoch=2, server=w.terminated(1)),),
            "status": w.status(consecutive_failures=1, failed_epoch=1),
        },
        "server-terminated", RECREATE, Phase.RECREATING, Reason.BACKING_OFF, failures=2, again=4,
        error=ErrorPhase.PROCESS,
    ),
    Case(
        "the third failure waits 8 seconds",
        lambda w: {
            "pods": (w.pod(epoch=3, server=w.terminated(1)),),
            "status": w.status(consecutive_failures=2, failed_epoch=2),
        },
        "server-terminated", RECREATE, Phase.RECREATING, Reason.BACKING_OFF, failures=3, again=8,
        error=ErrorPhase.PROCESS,
    ),
    Case(
        "the fourth failure is the last: one slow attempt follows",
        lambda w: {
            "pods": (w.pod(epoch=4, server=w.terminated(1)),),
            "status": w.status(consecutive_failures=3, failed_epoch=3),
        },
        "server-terminated", GIVE_UP, Phase.ERROR, Reason.BACKOFF_EXHAUSTED, failures=4, again=300,
        error=ErrorPhase.PROCESS,
    ),
    Case(
        "no slow attempt follows where it is switched off",
        lambda w: {
            "pods": (w.pod(epoch=4, server=w.terminated(1)),),
            "spec": w.spec(recovery={"retryAfterErrorSeconds": 0}),
            "status": w.status(consecutive_failures=3, failed_epoch=3),
        },
        "server-terminated", GIVE_UP, Phase.ERROR, Reason.BACKOFF_EXHAUSTED, failures=4, error=ErrorPhase.PROCESS,
    ),
    Case(
        "the slow attempt is made when its time has come",
        lambda w: {
            "pods": (w.pod(epoch=4, server=w.terminated(1)),),
            "status": spent(w, failed_epoch=4, next_attempt_time=w.now),
        },
        "server-terminated", RECREATE, Phase.RECREATING, Reason.PROCESS_EXITED, failures=4, creates=5,
        deletes=("mcp-time-1",),
    ),
    Case(
        "no retries wanted: the first failure is the last",
        lambda w: {"pods": (w.pod(server=w.terminated(1)),), "spec": w.spec(recovery={"maxRetries": 0})},
        "server-terminated", GIVE_UP, Phase.ERROR, Reason.BACKOFF_EXHAUSTED, failures=1, again=300,
        error=ErrorPhase.PROCESS,
    ),
    # Succeeded, Failed
    Case(
        "a pod that succeeded has failed: its server is wanted",
        lambda w: {"pods": (w.pod(phase="Succeeded", server=w.terminated(0, "Completed")),)},
        "pod-ended", RECREATE, Phase.RECREATING, Reason.BACKING_OFF, failures=1, again=2, error=ErrorPhase.PROCESS,
    ),
    Case(
        "an evicted pod costs a retry",
        lambda w: {"pods": (w.pod(phase="Failed", reason="Evicted", message="low on disk", server=w.running()),)},
        "pod-ended", RECREATE, Phase.RECREATING, Reason.BACKING_OFF, failures=1, again=2, error=ErrorPhase.PROCESS,
    ),
    Case(
        "a pod that the node did not let in costs a retry",
        lambda w: {"pods": (w.pending(phase="Failed", reason="OutOfcpu", message="no cpu"),)},
        "pod-ended", RECREATE, Phase.RECREATING, Reason.BACKING_OFF, failures=1, again=2,
        error=ErrorPhase.SCHEDULING,
    ),
    # Unknown, deleted, outdated
    Case(
        "a node that does not report is given its grace",
        lambda w: {"pods": (w.pod(phase="Unknown", unknown_since=w.ago(299)),)},
        "connected", NONE, Phase.CONNECTED, Reason.CONNECTED,
    ),
    Case(
        "after the grace of a lost node another pod is made, for free",
        lambda w: {"pods": (w.pod(phase="Unknown", unknown_since=w.ago(300)),)},
        "node-lost", RECREATE, Phase.RECREATING, Reason.NODE_LOST, creates=2, deletes=("mcp-time-1",),
    ),
    Case(
        "a pod that someone deletes is followed by the next, for free",
        lambda w: {"pods": (w.pod(deleting=True),)},
        "deleted-by-someone", RECREATE, Phase.RECREATING, Reason.POD_DELETED, creates=2,
    ),
    Case(
        "a pod that ends because it is deleted has not failed",
        lambda w: {"pods": (w.pod(deleting=True, server=w.terminated(143)),)},
        "deleted-by-someone", RECREATE, Phase.RECREATING, Reason.POD_DELETED, creates=2,
    ),
    Case(
        "a deleted pod does not shorten a running backoff",
        lambda w: {
            "pods": (w.pod(deleting=True, server=w.terminated(1)),),
            "status": w.status(consecutive_failures=1, failed_epoch=1, next_attempt_time=w.later(2)),
        },
        "waits-for-next-attempt", RECREATE, Phase.RECREATING, Reason.BACKING_OFF, failures=1, again=2,
    ),
    Case(
        "another configuration gives exactly one new pod",
        lambda w: {"config_hash": "other.refs"},
        "outdated", RECREATE, Phase.RECREATING, Reason.CONFIGURATION_CHANGED, creates=2, deletes=("mcp-time-1",),
    ),
    Case(
        "a pod made a moment ago is not replaced at once: two operators must not fight without pause",
        lambda w: {"config_hash": "other.refs", "pods": (w.pod(created_at=w.ago(1)),)},
        "outdated", RECREATE, Phase.RECREATING, Reason.CONFIGURATION_CHANGED, again=2,
    ),
    Case(
        "a Secret that changes right after the start is taken up at once",
        lambda w: {"config_hash": "spec.new", "pods": (w.pod(created_at=w.ago(1)),)},
        "outdated", RECREATE, Phase.RECREATING, Reason.CONFIGURATION_CHANGED, creates=2, deletes=("mcp-time-1",),
    ),
    Case(
        "another configuration resets a used-up budget at once",
        lambda w: {
            "config_hash": "spec.other",
            "pods": (w.pod(phase="Failed", server=w.terminated(1)),),
            "status": spent(w, next_attempt_time=w.later(200)),
        },
        "outdated", RECREATE, Phase.RECREATING, Reason.CONFIGURATION_CHANGED, creates=2, deletes=("mcp-time-1",),
    ),
    Case(
        "a new generation resets a used-up budget although the pod stays the same",
        lambda w: {
            "generation": 2,
            "pods": (w.pod(phase="Failed", server=w.terminated(1)),),
            "status": spent(w, next_attempt_time=w.later(200)),
        },
        "pod-ended", RECREATE, Phase.RECREATING, Reason.BACKING_OFF, failures=1, again=2, error=ErrorPhase.PROCESS,
    ),
    Case(
        "a healthy server is not replaced because a Secret it has read is gone",
        lambda w: {"config_hash": "spec.gone", "missing": missing()},
        "connected", NONE, Phase.CONNECTED, Reason.CONNECTED,
    ),
    Case(
        "a changed spec replaces the pod also while a Secret is missing",
        lambda w: {"config_hash": "other.gone", "missing": missing()},
        "outdated", RECREATE, Phase.RECREATING, Reason.CONFIGURATION_CHANGED, creates=2, deletes=("mcp-time-1",),
    ),
    Case(
        "left-overs of older numbers are removed",
        lambda w: {"pods": (w.pod(name="mcp-time-1", epoch=1), w.pod(name="mcp-time-2", epoch=2))},
        "connected", NONE, Phase.CONNECTED, Reason.CONNECTED, deletes=("mcp-time-1",),
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sentence)
def test_decision(case: Case, world: Worldly) -> None:
    plan = decide(world.seen(**case.change(world)))
    again = None if plan.look_again is None else (plan.look_again - world.now).total_seconds()
    assert (plan.rule, plan.action, plan.phase, plan.reason) == (
        case.rule,
        case.action,
        case.phase,
        case.reason,
    )
    assert plan.budget.failures == case.failures
    assert again == (None if case.again is None else pytest.approx(case.again))
    assert plan.create_epoch == case.creates
    assert tuple(pod.name for pod in plan.delete) == case.deletes
    assert (plan.failure.phase if plan.failure else None) == case.error
    assert plan.reconnect is case.reconnects


def test_every_row_of_the_table_has_a_case() -> None:
    assert {row.name for row in ROWS} == {case.rule for case in CASES}


def test_a_decision_prints_itself_for_the_log(world: Worldly) -> None:
    plan = decide(world.seen(pods=(world.pod(deleting=True),)))
    assert str(plan) == "deleted-by-someone: Recreate -> Recreating (PodDeleted): create epoch 2"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sentence)
def test_the_same_facts_give_the_same_decision(case: Case, world: Worldly) -> None:
    seen = world.seen(**case.change(world))
    assert decide(seen) == decide(seen)
