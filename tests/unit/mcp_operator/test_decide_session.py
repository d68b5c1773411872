"""The decision table: a running server and what its relay says.

A healthy server, what is changed, and the plan as it prints itself.
"""

from collections.abc import Callable
from typing import Any

import pytest

from mcp_operator.core.api import ErrorPhase
from mcp_operator.core.observation import MissingReference, RelayView

Json = dict[str, Any]
Change = Callable[[Any], Json]


def missing(**more: Any) -> tuple[MissingReference, ...]:
    return (MissingReference("Secret", "keys", "spec.env[0].valueFrom.secretKeyRef", **more),)


CASES: list[tuple[str, Change, str, ErrorPhase | None]] = [
    (
        "a process that starts is waited for until its deadline",
        lambda w: {"pods": (w.pod(ready=False, server=w.running(30)),), "relay": w.connecting(30)},
        "cold-start: Wait -> Connecting (Initializing) again=12:01:30",
        None,
    ),
    (
        "what a process that starts writes to stderr is no reason to do anything",
        lambda w: {
            "pods": (w.pod(ready=False, server=w.running(30)),),
            "relay": w.connecting(30, progress="Downloading numpy (15.2MiB)"),
        },
        "cold-start: Wait -> Connecting (Initializing) again=12:01:30",
        None,
    ),
    (
        "an operator that starts leaves the status alone until it has heard the relay",
        lambda w: {"relay": RelayView(), "status": w.status(phase="Connected", pod_uid="pod-1")},
        "not-heard-again-yet: None -> Connected (NotObserved)",
        None,
    ),
    (
        "what an earlier operator wrote about another pod counts for nothing",
        lambda w: {"relay": RelayView(), "status": w.status(phase="Connected", pod_uid="pod-0")},
        "cold-start: Wait -> Connecting (Initializing)",
        None,
    ),
    (
        "an operator that starts and finds the relay silent says so",
        lambda w: {"relay": RelayView(failures=1), "status": w.status(phase="Connected", pod_uid="pod-1")},
        "unreachable: Wait -> Reconnecting (RelayUnreachable) again=12:00:05",
        ErrorPhase.TRANSPORT,
    ),
    (
        "a session whose tools are still being listed is not shown as served",
        lambda w: {"relay": RelayView(w.report(toolCount=None))},
        "connected: Wait -> Connecting (Initializing)",
        None,
    ),
    (
        "a session that comes back is reconnecting until the Service takes the pod up again",
        lambda w: {
            "pods": (w.pod(ready=False, server=w.running(30)),),
            "status": w.status(phase="Reconnecting", pod_uid="pod-1"),
        },
        "connected: Wait -> Reconnecting (Initialized) again=12:00:01",
        None,
    ),
    (
        "a server that declares no tools needs no list",
        lambda w: {
            "relay": RelayView(
                w.report(
                    toolCount=None,
                    session={
                        "protocolVersion": "2025-11-25",
                        "serverInfo": {},
                        "capabilities": {"prompts": {}},
                        "since": w.ago(9).timestamp(),
                        "adopted": False,
                    },
                )
            )
        },
        "connected: None -> Connected (Connected)",
        None,
    ),
    (
        "a relay that was not heard yet is no failure",
        lambda w: {"relay": RelayView()},
        "cold-start: Wait -> Connecting (Initializing)",
        None,
    ),
    (
        "a restarted relay that connects anew has the whole deadline",
        lambda w: {"pods": (w.pod(server=w.running(4000)),), "relay": w.connecting(5)},
        "cold-start: Wait -> Connecting (Initializing) again=12:01:55",
        None,
    ),
    (
        "a dropped transport is given a second",
        lambda w: {"relay": RelayView(w.report(state="Dropped", session=None, since=w.ago(0.4).timestamp()))},
        "dropped: Wait -> Reconnecting (TransportDropped) again=12:00:00",
        ErrorPhase.TRANSPORT,
    ),
    (
        "a transport dropped for a second is reconnected, nothing is killed",
        lambda w: {"relay": RelayView(w.report(state="Dropped", session=None, since=w.ago(1).timestamp()))},
        "dropped: Reconnect -> Reconnecting (TransportDropped) again=12:00:05: reconnect",
        ErrorPhase.TRANSPORT,
    ),
    (
        "a clock that is ahead of ours does not put the reconnect off",
        lambda w: {
            "relay": RelayView(w.report(state="Dropped", session=None, since=w.later(60).timestamp()))
        },
        "dropped: Wait -> Reconnecting (TransportDropped) again=12:00:01",
        ErrorPhase.TRANSPORT,
    ),
    (
        "a session that came back is looked at again when it should have held",
        lambda w: {
            "relay": RelayView(w.report(since=w.ago(4).timestamp())),
            "status": w.status(drops_since=w.ago(30)),
        },
        "connected: None -> Connected (Connected) again=12:00:06",
        None,
    ),
    (
        "an unreachable relay is waited for, 1st time",
        lambda w: {"relay": RelayView(w.report(), failures=1, message="refused")},
        "unreachable: Wait -> Reconnecting (RelayUnreachable) again=12:00:05",
        ErrorPhase.TRANSPORT,
    ),
    (
        "an unreachable relay is waited for, 2nd time",
        lambda w: {"relay": RelayView(w.report(), failures=2, message="refused")},
        "unreachable: Wait -> Reconnecting (RelayUnreachable) again=12:00:05",
        ErrorPhase.TRANSPORT,
    ),
    (
        "an unreachable relay is reconnected, 3rd time, and the server stays",
        lambda w: {"relay": RelayView(w.report(), failures=3, message="refused")},
        "unreachable-for-long: Reconnect -> Reconnecting (RelayUnreachable) again=12:00:05: reconnect",
        ErrorPhase.TRANSPORT,
    ),
    (
        "a relay whose end the node tells of before a poll failed serves nobody",
        lambda w: {
            "pods": (w.pod(ready=False, relay=w.terminated(137)),),
            "status": w.status(phase="Connected", pod_uid="pod-1"),
        },
        "relay-ended: Wait -> Reconnecting (RelayFailed) again=12:00:01",
        ErrorPhase.TRANSPORT,
    ),
    (
        "a relay that the node starts again serves nobody yet",
        lambda w: {
            "pods": (w.pod(ready=False, relay=w.waiting("CrashLoopBackOff")),),
            "status": w.status(phase="Reconnecting", pod_uid="pod-1"),
        },
        "relay-ended: Wait -> Reconnecting (RelayFailed) again=12:00:01",
        ErrorPhase.TRANSPORT,
    ),
    (
        "a connected server needs nothing",
        lambda w: {},
        "connected: None -> Connected (Connected)",
        None,
    ),
    (
        "a session without the pod being ready is not shown as served",
        lambda w: {"pods": (w.pod(ready=False),)},
        "connected: Wait -> Connecting (Initialized) again=12:00:01",
        None,
    ),
    (
        "a session that the Service does not lead to yet is not shown as served",
        lambda w: {"reachable": False},
        "connected: Wait -> Connecting (Initialized)",
        None,
    ),
    (
        "a connected server keeps its count until it was stable for ten minutes",
        lambda w: {"status": w.status(consecutive_failures=2, failed_epoch=0)},
        "connected: None -> Connected (Connected) failures=2 again=12:09:00",
        None,
    ),
    (
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
        "connected: None -> Connected (Connected)",
        None,
    ),
    (
        "a tool list that cannot be read is shown, and clients are served",
        lambda w: {
            "relay": RelayView(
                w.report(
                    toolCount=None,
                    tools=[],
                    error={"phase": "ListTools", "reason": "Error", "message": "broken"},
                )
            )
        },
        "connected: None -> Connected (Connected)",
        ErrorPhase.LIST_TOOLS,
    ),
    (
        "another error with a session is none to serve with",
        lambda w: {
            "relay": RelayView(w.report(error={"phase": "Transport", "reason": "x", "message": "broken"}))
        },
        "connected: Wait -> Connecting (Initializing)",
        None,
    ),
    (
        "a relay that never came up is at fault, not the server",
        lambda w: {
            "pods": (w.pod(ready=False, relay=w.waiting("CrashLoopBackOff", last=w.ending(2))),),
            "relay": RelayView(failures=1, message="refused"),
        },
        "relay-ended: Wait -> Connecting (RelayFailed) again=12:00:05",
        ErrorPhase.TRANSPORT,
    ),
    (
        "a relay that was killed for its memory a moment ago and is silent since is named so",
        lambda w: {
            "pods": (w.pod(relay=w.running(2, last=w.ending(137, "OOMKilled"))),),
            "relay": RelayView(w.report(), failures=1, message="refused"),
        },
        "unreachable: Wait -> Reconnecting (RelayFailed) again=12:00:05",
        ErrorPhase.TRANSPORT,
    ),
    (
        "how a relay ended long ago explains nothing",
        lambda w: {
            "pods": (w.pod(relay=w.running(900, last=w.ending(1, at=901))),),
            "relay": RelayView(w.report(), failures=1, message="refused"),
        },
        "unreachable: Wait -> Reconnecting (RelayUnreachable) again=12:00:05",
        ErrorPhase.TRANSPORT,
    ),
    (
        "a report that cannot be read is waited for, and no reconnect is ordered",
        lambda w: {"relay": RelayView(unreadable="session.capabilities: recursion limit")},
        "unreadable: Wait -> Connecting (RelayUnreadable) again=12:01:00",
        ErrorPhase.TRANSPORT,
    ),
    (
        "a server that served is left alone however long its relay's reports cannot be read",
        lambda w: {
            "pods": (w.pod(server=w.running(9000)),),
            "relay": RelayView(unreadable="since: missing"),
            "status": w.status(phase="Reconnecting", pod_uid="pod-1"),
        },
        "unreadable: Wait -> Reconnecting (RelayUnreadable)",
        ErrorPhase.TRANSPORT,
    ),
    (
        "a node that does not report is given its grace",
        lambda w: {"pods": (w.pod(phase="Unknown", unknown_since=w.ago(299)),)},
        "connected: None -> Connected (Connected)",
        None,
    ),
    (
        "a healthy server is not replaced because a Secret it has read is gone",
        lambda w: {"config_hash": "spec.gone", "missing": missing()},
        "connected: None -> Connected (Connected)",
        None,
    ),
    (
        "left-overs of older numbers are removed",
        lambda w: {"pods": (w.pod(name="mcp-time-1", epoch=1), w.pod(name="mcp-time-2", epoch=2))},
        "connected: None -> Connected (Connected): delete mcp-time-1",
        None,
    ),
]


@pytest.mark.parametrize(
    ("change", "plan", "error"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_decision(decided: Callable[..., None], change: Change, plan: str, error: ErrorPhase | None) -> None:
    decided(change, plan, error)
