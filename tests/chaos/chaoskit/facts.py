"""What is known of a server before and after a fault, and what must have changed, or must not."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from chaoskit.kinds import Effect, Kind

# What it took at the beginning of the run and a little, but nothing is held to less than this.
POD_START_SECONDS = 10.0
SLACK_SECONDS = 5.0
BACKOFF = (2, 4, 8)
# After this time without a failure the servers' budgets are fresh: quick, so that most faults find one. The
# default is ten minutes.
STABLE_SECONDS = 3
# The node restarts the same container at once, then after 10 s, 20 s, 40 s, at most 5 minutes.
RESTART_SECONDS = 10.0
LONGEST_RESTART = 300.0
LIMIT_OF_CORPSES = 1


@dataclass(frozen=True)
class Facts:
    """One server at one moment: from its status, its newest pod, and the node's process table."""

    ready: bool
    epoch: int
    restarts: int
    reconnects: int
    failures: int
    pod: str
    pod_uid: str
    process: tuple[int, int]
    """Pid and start time (clock ticks since boot) of the server process; zeros when none runs."""
    relay_restarts: int
    session_seconds: float = 0.0
    """Age of the session; 0 without one."""


def of_status(item: dict[str, Any]) -> dict[str, Any]:
    """The part of the facts that stands in an MCPServer."""
    status = item.get("status") or {}
    recovery, session = status.get("recovery") or {}, status.get("session") or {}
    conditions = {entry["type"]: entry["status"] for entry in status.get("conditions") or ()}
    return {
        "ready": conditions.get("Ready") == "True",
        "epoch": session.get("epoch", 0),
        "restarts": recovery.get("restarts", 0),
        "reconnects": recovery.get("reconnects", 0),
        "failures": recovery.get("consecutiveFailures", 0),
        "pod": session.get("podName", ""),
    }


def for_bystander(kind: Kind) -> Kind:
    """What has to follow for a server that a fault of the cluster does not mean in particular."""
    return kind if kind.effect is Effect.REPLACED else replace(kind, effect=Effect.UNTOUCHED)


def age(item: dict[str, Any], now: datetime) -> float:
    """Seconds since the session of an MCPServer was initialised; 0 without one."""
    since = ((item.get("status") or {}).get("session") or {}).get("since")
    return (now - datetime.fromisoformat(since)).total_seconds() if since else 0.0


def has_retry(kind: Kind, before: Facts) -> bool:
    """Whether a fault that costs a retry finds one: without, Error and a slow attempt are right."""
    return kind.effect is not Effect.RECREATED or before.failures < len(BACKOFF)


def bound(kind: Kind, before: Facts, pod_start: float) -> float:
    """Seconds within which the server must be Ready again after the disturbance is over.

    `pod_start`: how long its pod took to become Ready when all servers of the run were started at once.
    """
    seconds = max(POD_START_SECONDS, pod_start + SLACK_SECONDS) + kind.extra
    if kind.effect is Effect.RECREATED:
        seconds += BACKOFF[min(before.failures, len(BACKOFF) - 1)]
    if kind.effect is Effect.RELAY_RESTARTED and before.relay_restarts:
        seconds += min(RESTART_SECONDS * 2 ** (before.relay_restarts - 1), LONGEST_RESTART)
    return seconds


def followed(kind: Kind, before: Facts, now: Facts) -> bool:
    """Whether what has to follow has followed, and the server is Ready."""
    if not now.ready:
        return False
    if kind.new_pod:
        return now.epoch > before.epoch
    if kind.effect is Effect.RELAY_RESTARTED:
        return now.relay_restarts > before.relay_restarts or now.pod_uid != before.pod_uid
    return True


def complaints(kind: Kind, before: Facts, after: Facts) -> list[str]:
    """What is not as the fault's effect wants it."""
    found = _new_pod(kind, before, after) if kind.new_pod else _same_pod(kind, before, after)
    if kind.effect is Effect.RECREATED:
        settled = after.failures == 0 and after.session_seconds >= STABLE_SECONDS
        if not settled and after.failures not in (1, before.failures + 1):
            found.append(f"consecutiveFailures went from {before.failures} to {after.failures}")
    elif after.failures not in (0, before.failures):
        found.append(f"a retry was spent: consecutiveFailures {before.failures} to {after.failures}")
    return found


def _new_pod(kind: Kind, before: Facts, after: Facts) -> list[str]:
    found = []
    if after.pod_uid == before.pod_uid:
        found.append("the pod is still the same")
    if after.restarts != before.restarts + 1 or after.epoch != before.epoch + 1:
        counted = f"restarts {before.restarts} to {after.restarts}, epoch {before.epoch} to {after.epoch}"
        found.append(f"{kind.name}: not exactly one replacement: {counted}")
    return found


def _same_pod(kind: Kind, before: Facts, after: Facts) -> list[str]:
    found = []
    if after.pod_uid != before.pod_uid:
        found.append(f"the pod was replaced: {before.pod} by {after.pod}")
    elif after.process != before.process:
        found.append(f"the server process is another: {before.process} was {after.process}")
    if after.restarts != before.restarts:
        found.append(f"restarts went from {before.restarts} to {after.restarts}")
    if kind.effect is not Effect.RELAY_RESTARTED and after.relay_restarts != before.relay_restarts:
        found.append(f"the relay was restarted {after.relay_restarts - before.relay_restarts} times")
    return found
