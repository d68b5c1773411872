"""What follows when a pod is due but the spec leaves its command to an image that is not known yet."""

from dataclasses import replace

from mcp_operator.core import failure
from mcp_operator.core.api import ErrorPhase, Phase, Reason, RecoveryAction
from mcp_operator.core.observation import EntryPointView
from mcp_operator.core.plan import Plan
from mcp_operator.core.rules.row import Case

_CURE = "or write the command into spec.command"


def awaited(case: Case, plan: Plan) -> Plan:
    """The plan instead of one that makes a pod, until the entry point of its image is known.

    Nothing was tried, so it costs no retry; and a pod that runs is not taken away before its successor can
    come.
    """
    entry = case.seen.entry
    if plan.create_epoch is None or entry is None or entry.command is not None:
        return plan
    waiting = replace(
        plan,
        budget=case.budget,
        delete=(),
        create_epoch=None,
        action=RecoveryAction.WAIT,
        look_again=entry.again,
    )
    return _unknown(case, waiting, entry) if entry.problem else _looked_up(waiting, entry)


def _looked_up(plan: Plan, entry: EntryPointView) -> Plan:
    return replace(
        plan,
        phase=Phase.PENDING,
        reason=Reason.POD_MISSING,
        message="spec.command is not set: the registry is asked what the image starts",
        look_up=not entry.asked,
    )


def _unknown(case: Case, plan: Plan, entry: EntryPointView) -> Plan:
    message = f"spec.command is not set, and what the image starts is not known: {entry.problem}; {_CURE}"
    found = failure.failure(ErrorPhase.IMAGE_PULL, Reason.ENTRY_POINT_UNKNOWN, message, case.now)
    over = entry.again is not None and case.now >= entry.again
    return replace(
        plan,
        action=RecoveryAction.WAIT if entry.passing else RecoveryAction.GIVE_UP,
        phase=Phase.PENDING if entry.passing else Phase.ERROR,
        reason=found.reason,
        message=found.message,
        failure=found,
        passing=entry.passing,
        look_again=None if over else entry.again,
        look_up=over and not entry.asked,
    )
