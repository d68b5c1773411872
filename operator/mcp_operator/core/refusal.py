"""What follows when the API server refuses the pod, or another object that the server needs."""

from dataclasses import dataclass, replace
from datetime import timedelta

from mcp_operator.core import backoff, failure, limits
from mcp_operator.core.api import ErrorPhase, Phase, Reason, RecoveryAction
from mcp_operator.core.failure import Failure
from mcp_operator.core.observation import Observation
from mcp_operator.core.plan import Plan
from mcp_operator.core.rules.row import Case, back_off, give_up

# HTTP status of an answer about a name that someone else has.
TAKEN = 409
NAMESPACE_TERMINATING = "NamespaceTerminating"
# What a plan says in these phases stands also when something beside the pod is refused.
_OWN_PHASE = frozenset({Phase.SUSPENDED, Phase.RECREATING, Phase.ERROR})
_QUOTA = ("exceeded quota", "failed quota")
# A RuntimeClass that is missing may come any moment, and a look costs one request.
SANDBOX_SECONDS = 30


@dataclass(frozen=True)
class Refusal:
    """The API server's answer: HTTP status, its message, and the first cause it names (or "")."""

    status: int
    message: str
    cause: str = ""
    what: str = "the pod"
    """What was refused, for people."""
    cure: str = ""
    """What to change, where more is known than the message tells."""


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


def withheld(seen: Observation, plan: Plan, answer: Refusal) -> Plan:
    """The plan that replaces one whose Service or Secret was refused, or the deletion of a pod.

    It costs a retry when one was due; the pod, if there is one, goes on, and its own trouble is shown first.
    """
    if answer.cause == NAMESPACE_TERMINATING:
        return _going_away(plan)
    found, budget = _failure(answer, seen), _missed_once(seen, plan)
    if plan.create_epoch is None and plan.phase in _OWN_PHASE:
        if plan.failure is not None:
            return plan
        return replace(plan, failure=found, budget=budget, look_again=budget.next_attempt)
    waiting = back_off(Case(seen, budget), found, budget)
    spent = waiting.phase is Phase.ERROR
    return replace(
        waiting,
        action=RecoveryAction.GIVE_UP if spent else RecoveryAction.WAIT,
        phase=Phase.ERROR if spent else Phase.PENDING,
        delete=plan.delete,
        create_epoch=plan.create_epoch,
        rule=plan.rule,
    )


def _missed_once(seen: Observation, plan: Plan) -> backoff.Budget:
    """The plan's budget with one failure more, unless the next attempt is still to come, or none is."""
    recovery, written = seen.spec.recovery, backoff.restore(seen.status, seen.generation, seen.config_hash)
    planned = plan.budget.next_attempt or written.next_attempt
    if planned is not None and planned > seen.now:
        return replace(plan.budget, next_attempt=planned)
    over = plan.budget.exhausted(recovery) and backoff.delay(plan.budget.failures, recovery) is None
    return plan.budget if over else backoff.missed(plan.budget, seen.now, recovery)


def _failure(answer: Refusal, seen: Observation) -> Failure:
    text = answer.message
    if "RuntimeClass" in text and "not found" in text:
        message = f"spec.runtimeClassName: {text}: create the RuntimeClass or name another"
        return failure.failure(ErrorPhase.SANDBOX, Reason.SANDBOX_FAILED, message, seen.now)
    if answer.status == TAKEN:
        return failure.failure(ErrorPhase.VALIDATION, Reason.OWNERSHIP_CONFLICT, text, seen.now)
    cure = f"{answer.cure} ({text})" if answer.cure else text
    message = f"the API server refused {answer.what}: {cure}"
    return failure.failure(ErrorPhase.ADMISSION, _reason(text), message, seen.now)


def _reason(message: str) -> Reason:
    if any(word in message for word in _QUOTA):
        return Reason.QUOTA_EXCEEDED
    return Reason.LIMIT_RANGE_EXCEEDED if limits.concerns(message) else Reason.ADMISSION_REFUSED


def _only_slowly(case: Case, epoch: int) -> backoff.Budget:
    seconds = min(case.seen.spec.recovery.retry_after_error_seconds, SANDBOX_SECONDS)
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
        passing=True,
        create_epoch=None,
    )
