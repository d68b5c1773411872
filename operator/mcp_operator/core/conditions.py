"""The conditions of the status, from facts and plan. Transition times move only with their status."""

from datetime import datetime

from mcp_operator.core import text
from mcp_operator.core.api import ConditionStatus, ConditionType, ErrorPhase, Phase, Reason
from mcp_operator.core.api.status import MAX_MESSAGE, Condition
from mcp_operator.core.observation import Observation, PodFacts
from mcp_operator.core.plan import Plan
from mcp_operator.core.rules.pending import missing_message, missing_reason

Told = tuple[ConditionStatus, Reason, str]
_REFUSING = frozenset({ErrorPhase.VALIDATION})
_SETTLED = frozenset({Phase.CONNECTED, Phase.SUSPENDED, Phase.TERMINATING})


def compute(seen: Observation, plan: Plan, generation: int, *, verified: bool) -> tuple[Condition, ...]:
    """Accepted, Available, Verified and Ready always; Reconciling and Stalled only while they are True.

    Accepted is about the next pod, the others about the one that runs: it stays Ready when a Secret that it
    was started with vanishes.
    """
    available = _available(seen, plan)
    told: dict[ConditionType, Told] = {
        ConditionType.ACCEPTED: _accepted(seen, plan),
        ConditionType.AVAILABLE: available,
        ConditionType.VERIFIED: _verified(plan, verified),
        ConditionType.READY: _ready(plan, verified),
    }
    if stalled(seen, plan):
        told[ConditionType.STALLED] = (ConditionStatus.TRUE, plan.reason, plan.message)
    elif plan.changed:
        told[ConditionType.RECONCILING] = (ConditionStatus.TRUE, Reason.CONFIGURATION_CHANGED, plan.changed)
    elif plan.phase not in _SETTLED:
        told[ConditionType.RECONCILING] = (ConditionStatus.TRUE, plan.reason, plan.message)
    before = {condition.type: condition for condition in seen.status.conditions}
    return tuple(
        _condition(kind, value, before.get(kind), seen.now, generation) for kind, value in told.items()
    )


def stalled(seen: Observation, plan: Plan) -> bool:
    """Whether nothing helps but a change or a slow attempt, which may be under way."""
    spent = plan.budget.exhausted(seen.spec.recovery) and plan.phase not in _SETTLED
    return plan.phase is Phase.ERROR or spent


def _condition(
    kind: ConditionType, told: Told, before: Condition | None, now: datetime, generation: int
) -> Condition:
    status, reason, message = told
    since: datetime = before.last_transition_time if before and before.status is status else now
    return Condition(
        type=kind,
        status=status,
        reason=reason,
        message=text.line(message, MAX_MESSAGE),
        last_transition_time=since,
        observed_generation=generation,
    )


def _accepted(seen: Observation, plan: Plan) -> Told:
    if plan.failure is not None and plan.failure.phase in _REFUSING:
        return ConditionStatus.FALSE, plan.failure.reason, plan.failure.message
    if seen.missing:
        first = seen.missing[0]
        return ConditionStatus.FALSE, missing_reason(first), missing_message(first, seen.namespace)
    return ConditionStatus.TRUE, Reason.VALID, "the spec is accepted"


def _available(seen: Observation, plan: Plan) -> Told:
    pod = seen.pod
    if plan.phase in {Phase.SUSPENDED, Phase.TERMINATING}:
        return ConditionStatus.FALSE, plan.reason, plan.message
    remote = seen.spec.remote is not None
    if pod is not None and plan.create_epoch is None and _up(pod) and (remote or _pod_serves(plan)):
        message = "the relay runs" if remote else "the server process and the relay run"
        return ConditionStatus.TRUE, Reason.POD_RUNNING, message
    if plan.failure is not None:
        return ConditionStatus.FALSE, plan.failure.reason, plan.failure.message
    if pod is None and plan.create_epoch is None:
        return ConditionStatus.FALSE, Reason.POD_MISSING, plan.message
    return ConditionStatus.FALSE, plan.reason, plan.message


def _up(pod: PodFacts) -> bool:
    return pod.server.running and pod.relay.running and not pod.deleting and not pod.ended


def _pod_serves(plan: Plan) -> bool:
    return plan.phase in {Phase.CONNECTING, Phase.CONNECTED, Phase.RECONNECTING}


def _verified(plan: Plan, verified: bool) -> Told:
    found = plan.failure
    if verified and found is not None:
        return ConditionStatus.TRUE, found.reason, f"the session is initialised, but: {found.message}"
    if verified:
        return ConditionStatus.TRUE, Reason.INITIALIZED, "the session is initialised"
    if found is not None:
        return ConditionStatus.FALSE, found.reason, found.message
    return ConditionStatus.FALSE, plan.reason, plan.message


def _ready(plan: Plan, verified: bool) -> Told:
    if plan.phase is Phase.CONNECTED and verified:
        return ConditionStatus.TRUE, Reason.CONNECTED, "clients are served"
    return ConditionStatus.FALSE, plan.reason, plan.message
