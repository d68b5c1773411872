"""What follows when the API server refuses to create the pod."""

from dataclasses import dataclass, replace
from datetime import timedelta

from mcp_operator.core import backoff, failure
from mcp_operator.core.api import ErrorPhase, Phase, Reason, RecoveryAction
from mcp_operator.core.failure import Failure
from mcp_operator.core.observation import Observation
from mcp_operator.core.plan import Plan
from mcp_operator.core.rules.row import Case, back_off, give_up

# HTTP status of an answer about a name that someone else has.
TAKEN = 409
NAMESPACE_TERMINATING = "NamespaceTerminating"
_LIMITS = (
    "exceeded quota",
    "failed quota",
    "maximum ",
    "minimum ",
    "must specify limits",
    "must specify requests",
)


@dataclass(frozen=True)
class Refusal:
    """The API server's answer: HTTP status, its message, and the first cause it names (or "")."""

    status: int
    message: str
    cause: str = ""


def refused(seen: Observation, plan: Plan, answer: Refusal) -> Plan:
    """The plan that replaces one whose pod was refused. Costs a retry unless waiting or nothing helps."""
    case = Case(seen, plan.budget)
    if answer.cause == NAMESPACE_TERMINATING:
        return _going_away(plan)
    epoch = plan.create_epoch or 0
    found = _failure(answer, seen)
    if found.phase is ErrorPhase.SANDBOX:
        return replace(give_up(case, found, _only_slowly(case, epoch)), rule=plan.rule)
    if found.reason is Reason.QUOTA_EXCEEDED and seen.pods:
        return _until_old_pods_are_gone(plan, found)
    budget = backoff.count(plan.budget, epoch, seen.now, seen.spec.recovery)
    return replace(back_off(case, found, budget), rule=plan.rule)


def _failure(answer: Refusal, seen: Observation) -> Failure:
    text = answer.message
    if "RuntimeClass" in text and "not found" in text:
        message = f"spec.runtimeClassName: {text}: create the RuntimeClass or name another"
        return failure.failure(ErrorPhase.SANDBOX, Reason.SANDBOX_FAILED, message, seen.now)
    if answer.status == TAKEN:
        return failure.failure(ErrorPhase.VALIDATION, Reason.OWNERSHIP_CONFLICT, text, seen.now)
    reason = Reason.QUOTA_EXCEEDED if any(word in text for word in _LIMITS) else Reason.ADMISSION_REFUSED
    return failure.failure(ErrorPhase.ADMISSION, reason, f"the API server refused the pod: {text}", seen.now)


def _only_slowly(case: Case, epoch: int) -> backoff.Budget:
    seconds = case.seen.spec.recovery.retry_after_error_seconds
    following = case.now + timedelta(seconds=seconds) if seconds else None
    return replace(case.budget, next_attempt=following, failed_epoch=epoch)


def _going_away(plan: Plan) -> Plan:
    return replace(
        plan,
        action=RecoveryAction.NONE,
        phase=Phase.TERMINATING,
        reason=Reason.TERMINATING,
        message="the namespace is being deleted",
        create_epoch=None,
    )


def _until_old_pods_are_gone(plan: Plan, found: Failure) -> Plan:
    # Not refused for what is asked, but for what the predecessor still holds; its end wakes us.
    return replace(
        plan,
        action=RecoveryAction.WAIT,
        phase=Phase.RECREATING,
        reason=found.reason,
        message=found.message,
        failure=found,
        create_epoch=None,
    )
