"""Which Events a change of status is worth: one per transition, none for what only repeats itself."""

from dataclasses import dataclass

from mcp_operator.core import text
from mcp_operator.core.api import MCPServerStatus, Phase, Reason
from mcp_operator.core.plan import Plan

MAX_NOTE = 1024
_WORRYING = frozenset({Phase.ERROR, Phase.RECONNECTING})


@dataclass(frozen=True)
class Note:
    """One Event: reason of the transition, text for people, whether it is a warning."""

    reason: str
    message: str
    warning: bool


def notes(before: MCPServerStatus, after: MCPServerStatus, plan: Plan, created: str = "") -> tuple[Note, ...]:
    """The Events of one run; `created` is the name of the pod it made."""
    found = []
    if created:
        found.append(Note("Created", f"created pod {created}: {plan.message}", warning=False))
    elif _told(before) != _told(after) and plan.reason is not Reason.POD_PENDING:
        warning = plan.failure is not None or after.phase in _WORRYING
        gave_up = after.phase is Phase.ERROR
        reason = plan.failure.reason if plan.failure is not None and not gave_up else plan.reason
        found.append(Note(reason.value, text.line(_message(after, plan), MAX_NOTE), warning))
    return tuple(found)


def _told(status: MCPServerStatus) -> tuple[object, ...]:
    failed = status.recovery.failed_epoch if status.recovery else None
    error = status.error.reason if status.error and status.phase is not Phase.CONNECTED else None
    return status.phase, error, failed if status.phase is not Phase.CONNECTED else None


def _message(after: MCPServerStatus, plan: Plan) -> str:
    if after.phase is Phase.CONNECTED:
        return f"the session is initialised, {after.tool_count or 0} tools"
    if plan.failure is not None and plan.failure.message not in plan.message:
        return f"{plan.message}: {plan.failure.message}"
    return plan.message
