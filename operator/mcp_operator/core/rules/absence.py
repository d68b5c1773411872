"""Rows about a pod that is not there, is going away, or is not the one that the spec asks for."""

from dataclasses import replace
from datetime import datetime, timedelta

from mcp_operator.core import configuration
from mcp_operator.core.api import ErrorPhase, Phase, Reason, RecoveryAction
from mcp_operator.core.failure import failure
from mcp_operator.core.observation import MissingReference, PodFacts
from mcp_operator.core.plan import Plan
from mcp_operator.core.rules.pending import missing_message, missing_reason
from mcp_operator.core.rules.row import (
    Case,
    Row,
    back_off,
    create,
    earliest,
    give_up,
    left_overs,
    recreate,
)

CALM_SECONDS = 3
# Stages in which no retry can help: only a change, or the slow attempt.
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


def _unusable_token(case: Case) -> Plan | None:
    gap = _fault(case)
    if gap is None or (case.seen.pod is not None and case.seen.pod.serving):
        return None
    message = missing_message(gap, case.seen.namespace)
    return Plan(
        action=RecoveryAction.WAIT,
        phase=Phase.PENDING,
        reason=missing_reason(gap),
        message=message,
        budget=case.budget,
        failure=failure(ErrorPhase.VALIDATION, missing_reason(gap), message, case.now),
        passing=True,
        delete=left_overs(case),
    )


def _fault(case: Case) -> MissingReference | None:
    return next((gap for gap in case.seen.missing if gap.fault), None)


def _outdated(case: Case) -> Plan | None:
    pod = case.seen.pod
    if pod is None or not is_outdated(case, pod):
        return None
    message = configuration.change(pod.config, case.seen.config)
    calm = calm_until(case, pod)
    if calm is None:
        return recreate(case, Reason.CONFIGURATION_CHANGED, message)
    if _serves(case, pod):
        return None  # the other rows say how it fares meanwhile
    waiting = back_off(case, None, case.budget)
    return replace(
        waiting, reason=Reason.CONFIGURATION_CHANGED, message=message, look_again=calm, failure=None
    )


def with_change(case: Case, plan: Plan) -> Plan:
    """A plan for a pod that serves on until it may be replaced."""
    pod = case.seen.pod
    if pod is None or plan.create_epoch is not None or not _serves(case, pod) or not is_outdated(case, pod):
        return plan
    look = earliest(plan.look_again, calm_until(case, pod))
    return replace(plan, changed=configuration.change(pod.config, case.seen.config), look_again=look)


def _serves(case: Case, pod: PodFacts) -> bool:
    """Whether there is a session that goes on: a failure of what is replaced anyway must not be counted."""
    return pod.serving and case.seen.relay.usable is not None


def is_outdated(case: Case, pod: PodFacts) -> bool:
    """Whether the pod is to be replaced because it was made from something else.

    A running server is not replaced by one that could not start because something that it names is gone,
    unless somebody asks for another pod.
    """
    if pod.config_hash == case.seen.config_hash:
        return False
    if not case.seen.missing or pod.server.terminated or pod.ended:
        return True
    if _fault(case) is not None:
        return False
    return not (configuration.same_wish(pod.config, case.seen.config) or _same_template(case, pod))


def calm_until(case: Case, pod: PodFacts) -> datetime | None:
    """When a pod that was made a moment ago may be replaced; None: now.

    Changes that follow each other are taken together, and two operators with different settings, run by
    accident, do not replace each other's pods without pause. What was missing is taken up at once.
    """
    if pod.created_at is None or configuration.completed(pod.config, case.seen.config):
        return None
    until = pod.created_at + timedelta(seconds=CALM_SECONDS)
    return until if until > case.now else None


def _same_template(case: Case, pod: PodFacts) -> bool:
    return pod.config_hash.split(".", maxsplit=1)[0] == case.seen.config_hash.split(".", maxsplit=1)[0]


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
        "the bearer token that the spec names cannot be used, and no server runs",
        "wait for its Secret to change",
        "no",
        _unusable_token,
    ),
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
        f"recreate once, with a fresh budget, but not before the pod is {CALM_SECONDS} s old",
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
