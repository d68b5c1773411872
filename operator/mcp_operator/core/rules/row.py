"""What every row of the decision table is made of."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from mcp_operator.core import backoff, failure
from mcp_operator.core.api import Phase, Reason, RecoveryAction
from mcp_operator.core.api.spec import Recovery
from mcp_operator.core.backoff import Budget
from mcp_operator.core.failure import Failure
from mcp_operator.core.observation import Observation, PodFacts
from mcp_operator.core.plan import Plan


@dataclass(frozen=True)
class Case:
    """The facts of one decision with the budget that was read from the status."""

    seen: Observation
    budget: Budget

    @property
    def now(self) -> datetime:
        """Time of the decision."""
        return self.seen.now

    @property
    def exhausted(self) -> bool:
        """Whether all retries have been used."""
        return self.budget.exhausted(self.seen.spec.recovery)


@dataclass(frozen=True)
class Row:
    """One row: in words for docs/recovery.md, and as the function that is None where it does not apply."""

    when: str
    then: str
    costs: str
    apply: Callable[[Case], Plan | None]

    @property
    def name(self) -> str:
        """Short name for the log."""
        return self.apply.__name__.strip("_").replace("_", "-")


def living(pods: tuple[PodFacts, ...]) -> tuple[PodFacts, ...]:
    """Those that nobody has deleted yet."""
    return tuple(pod for pod in pods if not pod.deleting)


def create(case: Case, reason: Reason, message: str, budget: Budget | None = None) -> Plan:
    """Make the next pod and remove all older ones."""
    return Plan(
        action=RecoveryAction.CREATE,
        phase=Phase.RECREATING if case.seen.pods else Phase.PENDING,
        reason=reason,
        message=message,
        budget=backoff.attempted(budget or case.budget),
        delete=living(case.seen.pods),
        create_epoch=case.seen.last_epoch + 1,
    )


def recreate(case: Case, reason: Reason, message: str, budget: Budget | None = None) -> Plan:
    """Replace the pod now."""
    return replace(
        create(case, reason, message, budget), action=RecoveryAction.RECREATE, phase=Phase.RECREATING
    )


def fail(case: Case, found: Failure | None, epoch: int) -> Plan:
    """Count a failure once per pod, then wait for the next attempt or give up. `found` None: told before."""
    budget, recovery = case.budget, case.seen.spec.recovery
    # A pod that failed, came up after all and fails again has no attempt planned, though one is left.
    unplanned = budget.next_attempt is None and backoff.delay(budget.failures, recovery) is not None
    if not budget.counted(epoch) or unplanned:
        budget = backoff.count(budget, epoch, case.now, recovery)
    elif budget.next_attempt is not None and budget.due(case.now):
        last = found or failure.remembered(case.seen.status.error)
        reason, message = (last.reason, last.message) if last else (Reason.RECREATING, "it failed")
        return recreate(case, reason, f"attempt after: {message}", budget)
    return back_off(case, found, budget)


def give_up(case: Case, found: Failure | None, budget: Budget) -> Plan:
    """No retry can help: phase Error at once, until a change or the slow attempt. `found` as in `fail`."""
    last = found or failure.remembered(case.seen.status.error)
    plan = back_off(case, last, budget)
    reason, message = (last.reason, last.message) if last else (plan.reason, plan.message)
    return replace(plan, action=RecoveryAction.GIVE_UP, phase=Phase.ERROR, reason=reason, message=message)


def back_off(case: Case, found: Failure | None, budget: Budget) -> Plan:
    """Wait for the next attempt; phase Error once only the slow ones are left. `found` None: told before."""
    recovery = case.seen.spec.recovery
    spent = budget.exhausted(recovery)
    last = found or failure.remembered(case.seen.status.error)
    return Plan(
        action=RecoveryAction.GIVE_UP if spent else RecoveryAction.RECREATE,
        phase=Phase.ERROR if spent else Phase.RECREATING,
        reason=Reason.BACKOFF_EXHAUSTED if spent else Reason.BACKING_OFF,
        message=_outlook(budget, recovery, spent) + (f": {last.message}" if last else ""),
        budget=budget,
        failure=last,
        look_again=budget.next_attempt,
        delete=left_overs(case),
    )


def refuse(case: Case, found: Failure) -> Plan:
    """Phase Error without touching anything: only a change of what `found` names helps."""
    return Plan(
        action=RecoveryAction.GIVE_UP,
        phase=Phase.ERROR,
        reason=found.reason,
        message=found.message,
        budget=case.budget,
        failure=found,
    )


def earliest(*moments: datetime | None) -> datetime | None:
    """The first of the moments that are known."""
    return min((moment for moment in moments if moment is not None), default=None)


def left_overs(case: Case) -> tuple[PodFacts, ...]:
    """Pods older than the newest one, which nobody needs any more."""
    return living(case.seen.pods[:-1])


def _outlook(budget: Budget, recovery: Recovery, spent: bool) -> str:
    following = budget.next_attempt
    at = f"{following:%H:%M:%S} UTC" if following is not None else ""
    if not spent:
        return f"retry {budget.failures} of {recovery.max_retries} follows" + (f" at {at}" if at else "")
    retries = recovery.max_retries
    failed = f"all {retries} retries failed" if retries else "no retries (spec.recovery.maxRetries is 0)"
    return f"{failed}; next attempt at {at}" if at else f"{failed}; waiting for a change"
