"""Rows about what is asked for: deletion, suspension, a spec or a foreign object that forbids any pod."""

from dataclasses import replace
from datetime import timedelta

from mcp_operator.core.api import ErrorPhase, Phase, Reason, RecoveryAction
from mcp_operator.core.failure import failure
from mcp_operator.core.plan import Plan
from mcp_operator.core.rules.row import Case, Row, living, refuse

CONFLICT_LOOK_SECONDS = 30
PREDECESSOR_LOOK_SECONDS = 5


def _terminating(case: Case) -> Plan | None:
    if not case.seen.deleting:
        return None
    return Plan(
        action=RecoveryAction.NONE,
        phase=Phase.TERMINATING,
        reason=Reason.TERMINATING,
        message="the resource is being deleted",
        budget=case.budget,
        wanted=False,
    )


def _invalid_spec(case: Case) -> Plan | None:
    if not case.seen.invalid:
        return None
    found = failure(ErrorPhase.VALIDATION, Reason.INVALID_SPEC, case.seen.invalid, case.now)
    return replace(refuse(case, found), wanted=False)


def _suspended(case: Case) -> Plan | None:
    if not case.seen.spec.suspend:
        return None
    return Plan(
        action=RecoveryAction.NONE,
        phase=Phase.SUSPENDED,
        reason=Reason.SUSPENDED,
        message="spec.suspend is true: no pod runs",
        budget=case.budget,
        delete=living(case.seen.pods),
    )


def _foreign_object(case: Case) -> Plan | None:
    if not case.seen.conflict:
        return None
    found = failure(ErrorPhase.VALIDATION, Reason.OWNERSHIP_CONFLICT, case.seen.conflict, case.now)
    return replace(refuse(case, found), look_again=case.now + timedelta(seconds=CONFLICT_LOOK_SECONDS))


def _predecessor(case: Case) -> Plan | None:
    if not case.seen.predecessor:
        return None
    return Plan(
        action=RecoveryAction.WAIT,
        phase=Phase.PENDING,
        reason=Reason.POD_MISSING,
        message=f"a deleted MCPServer of the same name is being cleared away: {case.seen.predecessor}",
        budget=case.budget,
        look_again=case.now + timedelta(seconds=PREDECESSOR_LOOK_SECONDS),
        wanted=False,
    )


ROWS = (
    Row(
        "the MCPServer is being deleted",
        "nothing; the garbage collector removes the children",
        "no",
        _terminating,
    ),
    Row("the spec cannot be read", "phase Error; wait for a change", "no", _invalid_spec),
    Row("`spec.suspend` is true", "delete the pod", "no", _suspended),
    Row(
        "a Service or Secret of a deleted MCPServer of the same name is still there",
        "wait for the garbage collector",
        "no",
        _predecessor,
    ),
    Row(
        "an object with a child's name belongs to someone else",
        f"phase Error; nothing is touched; look again after {CONFLICT_LOOK_SECONDS} s",
        "no",
        _foreign_object,
    ),
)
