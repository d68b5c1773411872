"""Rows about a pod that is not there, is going away, or is not the one that the spec asks for."""

from dataclasses import replace
from datetime import datetime, timedelta

from mcp_operator.core.api import ErrorPhase, Reason
from mcp_operator.core.observation import PodFacts
from mcp_operator.core.plan import Plan
from mcp_operator.core.rules.row import Case, Row, back_off, create, give_up, recreate

# Stages in which no retry can help: only a change, or the slow attempt.
CALM_SECONDS = 3
HOPELESS = frozenset({ErrorPhase.SANDBOX})


def _waits_for_next_attempt(case: Case) -> Plan | None:
    pod = case.seen.pod
    if pod is not None and not pod.deleting:
        return None
    if case.budget.due(case.now) and not _gave_up(case):
        return None
    if _hopeless(case):
        return give_up(case, None, case.budget)
    return back_off(case, None, case.budget)


def _gave_up(case: Case) -> bool:
    """Whether the last attempt failed and no other follows by itself."""
    budget = case.budget
    last_failed = budget.failed_epoch is not None and budget.failed_epoch >= case.seen.last_epoch
    return last_failed and budget.next_attempt is None and (case.exhausted or _hopeless(case))


def _hopeless(case: Case) -> bool:
    error = case.seen.status.error
    return case.budget.failed_epoch is not None and error is not None and error.phase in HOPELESS


def _no_pod(case: Case) -> Plan | None:
    if case.seen.pod is not None:
        return None
    return create(case, Reason.CREATED, "the pod is created")


def _deleted_by_someone(case: Case) -> Plan | None:
    pod = case.seen.pod
    if pod is None or not pod.deleting:
        return None
    return recreate(case, Reason.POD_DELETED, f"the pod {pod.name} is being deleted: the next one follows")


def _outdated(case: Case) -> Plan | None:
    pod = case.seen.pod
    if pod is None or pod.config_hash == case.seen.config_hash:
        return None
    if _only_lost_references(case, pod.config_hash) and not pod.server.terminated and not pod.ended:
        return None
    message = "the spec, a referenced Secret or ConfigMap, or the restart annotation changed"
    calm = _calm_until(case, pod)
    if calm is not None:
        waiting = back_off(case, None, case.budget)
        return replace(
            waiting, reason=Reason.CONFIGURATION_CHANGED, message=message, look_again=calm, failure=None
        )
    return recreate(case, Reason.CONFIGURATION_CHANGED, message)


def _calm_until(case: Case, pod: PodFacts) -> datetime | None:
    """When a pod that was made a moment ago from another spec may be replaced; None: now.

    Two operators with different settings, run by accident, would replace each other's pods without pause.
    """
    if pod.created_at is None or pod.config_hash.split(".")[0] == case.seen.config_hash.split(".")[0]:
        return None
    until = pod.created_at + timedelta(seconds=CALM_SECONDS)
    return until if until > case.now else None


def _only_lost_references(case: Case, old_hash: str) -> bool:
    # A running server is not replaced by one that could not start because something it names is gone.
    same_spec = old_hash.split(".", maxsplit=1)[0] == case.seen.config_hash.split(".")[0]
    return bool(case.seen.missing) and same_spec


def _node_lost(case: Case) -> Plan | None:
    pod = case.seen.pod
    if pod is None or pod.unknown_since is None:
        return None
    if case.now < pod.unknown_since + timedelta(seconds=min(pod.node_grace_seconds, 86_400.0)):
        return None
    return recreate(
        case, Reason.NODE_LOST, f"the node of pod {pod.name} does not report: another pod is made"
    )


ROWS = (
    Row(
        "no pod, and the next attempt is not due",
        "wait until `nextAttemptTime`; phase Error once the retries are used up",
        "no",
        _waits_for_next_attempt,
    ),
    Row("no pod", "create the pod", "no", _no_pod),
    Row("being deleted by someone", "recreate under the next epoch's name", "no", _deleted_by_someone),
    Row(
        "made from another spec, Secret, ConfigMap or restart annotation",
        "recreate once, with a fresh budget",
        "no",
        _outdated,
    ),
    Row(
        "Unknown, or its node has not reported for the grace of its toleration",
        "recreate elsewhere",
        "no",
        _node_lost,
    ),
)
