"""The decision table: a server that has failed.

A healthy server, what is changed, and the plan as it prints itself.
"""

from collections.abc import Callable
from typing import Any

import pytest

from mcp_operator.core.api import ErrorPhase, MCPServerStatus, Reason
from mcp_operator.core.api.status import ServerError
from mcp_operator.core.observation import RelayView
from mcp_relay_api.status import RelayStatus

Json = dict[str, Any]
Change = Callable[[Any], Json]


def exited(code: int = 1, **more: Any) -> Json:
    return {"exitCode": code, "reason": "Exited", "time": 1_769_860_799.0, **more}


def mute(w: Any, reason: str = "StdoutClosed") -> RelayStatus:
    error = {"phase": "Transport", "reason": reason, "message": "it closed its end"}
    found: RelayStatus = w.report(state="Dropped", session=None, error=error, since=w.ago(0.1).timestamp())
    return found


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
        "an operator that was away longer than the backoff goes on at once",
        lambda w: {
            "pods": (w.pod(phase="Failed", server=w.terminated(1)),),
            "status": w.status(consecutive_failures=2, failed_epoch=1, next_attempt_time=w.ago(300)),
        },
        "pod-ended: Recreate -> Recreating (ProcessExited) failures=2: delete mcp-time-1, create epoch 2",
        None,
    ),
    (
        "a start that takes longer than its deadline costs a retry",
        lambda w: {"pods": (w.pod(server=w.running(120)),), "relay": w.connecting(120)},
        "startup-deadline-passed: Recreate -> Recreating (BackingOff) failures=1 again=12:00:02",
        ErrorPhase.INITIALIZE,
    ),
    (
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
        "initialize-refused: Recreate -> Recreating (BackingOff) failures=1 again=12:00:02",
        ErrorPhase.INITIALIZE,
    ),
    (
        "a transport that cannot be restored for the whole deadline is a failure",
        lambda w: {
            "pods": (w.pod(server=w.running(900)),),
            "relay": RelayView(w.report(state="Dropped", session=None, since=w.ago(121).timestamp())),
        },
        "startup-deadline-passed: Recreate -> Recreating (BackingOff) failures=1 again=12:00:02",
        ErrorPhase.TRANSPORT,
    ),
    (
        "a server that closed its stdout can never answer again, though its process runs",
        lambda w: {"relay": RelayView(mute(w))},
        "stdio-closed: Recreate -> Recreating (BackingOff) failures=1 again=12:00:02",
        ErrorPhase.PROCESS,
    ),
    (
        "a server that closed its stdout is replaced when the backoff is over",
        lambda w: {
            "relay": RelayView(mute(w)),
            "status": w.status(consecutive_failures=1, failed_epoch=1, next_attempt_time=w.now),
        },
        "stdio-closed: Recreate -> Recreating (StdoutClosed) failures=1: delete mcp-time-1, create epoch 2",
        None,
    ),
    (
        "a server that closed its stdin can never be called again, though its process runs",
        lambda w: {"relay": RelayView(mute(w, "StdinClosed"))},
        "stdio-closed: Recreate -> Recreating (BackingOff) failures=1 again=12:00:02",
        ErrorPhase.PROCESS,
    ),
    (
        "a start that takes too long because the relay fails is the relay's fault",
        lambda w: {
            "pods": (
                w.pod(server=w.running(130), relay=w.waiting("CrashLoopBackOff", last=w.ending(2, at=200))),
            ),
            "relay": RelayView(failures=9, message="refused"),
        },
        "startup-deadline-passed: Recreate -> Recreating (BackingOff) failures=1 again=12:00:02",
        ErrorPhase.TRANSPORT,
    ),
    (
        "a start whose reports can never be read is given up at the deadline",
        lambda w: {
            "pods": (w.pod(server=w.running(130)),),
            "relay": RelayView(unreadable="since: missing"),
        },
        "startup-deadline-passed: Recreate -> Recreating (BackingOff) failures=1 again=12:00:02",
        ErrorPhase.TRANSPORT,
    ),
    (
        "a transport that was never restored for long is a failure, however often it broke",
        lambda w: {
            "pods": (w.pod(server=w.running(900)),),
            "relay": RelayView(w.report(state="Dropped", session=None, since=w.ago(1).timestamp())),
            "status": w.status(drops_since=w.ago(120)),
        },
        "startup-deadline-passed: Recreate -> Recreating (BackingOff) failures=1 again=12:00:02",
        ErrorPhase.TRANSPORT,
    ),
    (
        "a server that ended is replaced although the phase is still Running",
        lambda w: {"pods": (w.pod(server=w.terminated(137)),)},
        "server-terminated: Recreate -> Recreating (BackingOff) failures=1 again=12:00:02",
        ErrorPhase.PROCESS,
    ),
    (
        "a server that ended with 0 has failed too",
        lambda w: {"pods": (w.pod(server=w.terminated(0)),)},
        "server-terminated: Recreate -> Recreating (BackingOff) failures=1 again=12:00:02",
        ErrorPhase.PROCESS,
    ),
    (
        "the relay's word about the end is enough",
        lambda w: {"relay": RelayView(w.report(state="Exited", session=None, exit=exited()))},
        "relay-saw-exit: Recreate -> Recreating (BackingOff) failures=1 again=12:00:02",
        ErrorPhase.PROCESS,
    ),
    (
        "a relay that says on its way out how the process ended is believed",
        lambda w: {"relay": RelayView(w.report(state="Terminating", session=None, exit=exited()))},
        "relay-saw-exit: Recreate -> Recreating (BackingOff) failures=1 again=12:00:02",
        ErrorPhase.PROCESS,
    ),
    (
        "a failed pod whose relay goes down too still waits for its next attempt",
        lambda w: {
            "relay": RelayView(w.report(state="Terminating", session=None)),
            "status": w.status(consecutive_failures=1, failed_epoch=1, next_attempt_time=w.later(1.5)),
        },
        "condemned: Recreate -> Recreating (BackingOff) failures=1 again=12:00:01",
        None,
    ),
    (
        "a failed pod whose relay is gone is replaced when the backoff is over",
        lambda w: {
            "relay": RelayView(failures=2),
            "status": w.status(consecutive_failures=1, failed_epoch=1, next_attempt_time=w.now),
        },
        ("condemned: Recreate -> Recreating (Recreating) failures=1: delete mcp-time-1, create epoch 2"),
        None,
    ),
    (
        "a server that came up too late, but before it was replaced, stays",
        lambda w: {"status": w.status(consecutive_failures=1, failed_epoch=1, next_attempt_time=w.later(1))},
        "connected: None -> Connected (Connected) failures=1 again=12:09:00",
        None,
    ),
    (
        "a pod that failed, came up after all and fails again is counted again",
        lambda w: {
            "pods": (w.pod(server=w.terminated(1)),),
            "status": w.status(consecutive_failures=1, failed_epoch=1),
        },
        "server-terminated: Recreate -> Recreating (BackingOff) failures=2 again=12:00:04",
        ErrorPhase.PROCESS,
    ),
    (
        "a failure that was counted is not counted again",
        lambda w: {
            "pods": (w.pod(server=w.terminated(1)),),
            "status": w.status(consecutive_failures=1, failed_epoch=1, next_attempt_time=w.later(1.5)),
        },
        "server-terminated: Recreate -> Recreating (BackingOff) failures=1 again=12:00:01",
        ErrorPhase.PROCESS,
    ),
    (
        "when the backoff is over the pod is replaced and its remains go",
        lambda w: {
            "pods": (w.pod(server=w.terminated(1)),),
            "status": w.status(consecutive_failures=1, failed_epoch=1, next_attempt_time=w.now),
        },
        (
            "server-terminated: Recreate -> Recreating (ProcessExited) failures=1: "
            "delete mcp-time-1, create epoch 2"
        ),
        None,
    ),
    (
        "the second failure waits 4 seconds",
        lambda w: {
            "pods": (w.pod(epoch=2, server=w.terminated(1)),),
            "status": w.status(consecutive_failures=1, failed_epoch=1),
        },
        "server-terminated: Recreate -> Recreating (BackingOff) failures=2 again=12:00:04",
        ErrorPhase.PROCESS,
    ),
    (
        "the third failure waits 8 seconds",
        lambda w: {
            "pods": (w.pod(epoch=3, server=w.terminated(1)),),
            "status": w.status(consecutive_failures=2, failed_epoch=2),
        },
        "server-terminated: Recreate -> Recreating (BackingOff) failures=3 again=12:00:08",
        ErrorPhase.PROCESS,
    ),
    (
        "the fourth failure is the last: one slow attempt follows",
        lambda w: {
            "pods": (w.pod(epoch=4, server=w.terminated(1)),),
            "status": w.status(consecutive_failures=3, failed_epoch=3),
        },
        "server-terminated: GiveUp -> Error (BackoffExhausted) failures=4 again=12:05:00",
        ErrorPhase.PROCESS,
    ),
    (
        "no slow attempt follows where it is switched off",
        lambda w: {
            "pods": (w.pod(epoch=4, server=w.terminated(1)),),
            "spec": w.spec(recovery={"retryAfterErrorSeconds": 0}),
            "status": w.status(consecutive_failures=3, failed_epoch=3),
        },
        "server-terminated: GiveUp -> Error (BackoffExhausted) failures=4",
        ErrorPhase.PROCESS,
    ),
    (
        "the slow attempt is made when its time has come",
        lambda w: {
            "pods": (w.pod(epoch=4, server=w.terminated(1)),),
            "status": spent(w, failed_epoch=4, next_attempt_time=w.now),
        },
        (
            "server-terminated: Recreate -> Recreating (ProcessExited) failures=4: "
            "delete mcp-time-1, create epoch 5"
        ),
        None,
    ),
    (
        "no retries wanted: the first failure is the last",
        lambda w: {"pods": (w.pod(server=w.terminated(1)),), "spec": w.spec(recovery={"maxRetries": 0})},
        "server-terminated: GiveUp -> Error (BackoffExhausted) failures=1 again=12:05:00",
        ErrorPhase.PROCESS,
    ),
    (
        "a pod that succeeded has failed: its server is wanted",
        lambda w: {"pods": (w.pod(phase="Succeeded", server=w.terminated(0, "Completed")),)},
        "pod-ended: Recreate -> Recreating (BackingOff) failures=1 again=12:00:02",
        ErrorPhase.PROCESS,
    ),
    (
        "an evicted pod costs a retry",
        lambda w: {
            "pods": (w.pod(phase="Failed", reason="Evicted", message="low on disk", server=w.running()),)
        },
        "pod-ended: Recreate -> Recreating (BackingOff) failures=1 again=12:00:02",
        ErrorPhase.PROCESS,
    ),
    (
        "a pod that the node did not let in costs a retry",
        lambda w: {"pods": (w.pending(phase="Failed", reason="OutOfcpu", message="no cpu"),)},
        "pod-ended: Recreate -> Recreating (BackingOff) failures=1 again=12:00:02",
        ErrorPhase.SCHEDULING,
    ),
    (
        "a new generation resets a used-up budget although the pod stays the same",
        lambda w: {
            "generation": 2,
            "pods": (w.pod(phase="Failed", server=w.terminated(1)),),
            "status": spent(w, next_attempt_time=w.later(200)),
        },
        "pod-ended: Recreate -> Recreating (BackingOff) failures=1 again=12:00:02",
        ErrorPhase.PROCESS,
    ),
]


@pytest.mark.parametrize(
    ("change", "plan", "error"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_decision(decided: Callable[..., None], change: Change, plan: str, error: ErrorPhase | None) -> None:
    decided(change, plan, error)
