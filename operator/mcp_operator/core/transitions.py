"""Which Events a change of status is worth: one per transition, none for what only repeats itself."""

from dataclasses import dataclass

from mcp_operator.core import text
from mcp_operator.core.api import ConditionType, MCPServerStatus, Phase, Reason
from mcp_operator.core.plan import Plan

MAX_NOTE = 1024
_WORRYING = frozenset({Phase.ERROR, Phase.RECONNECTING})
# How long a broken connection must last to be worth an Event: a process that ends breaks it as well.
LASTING_SECONDS = 3.0
_ON_ITS_WAY = frozenset(
    {
        Reason.NOT_OBSERVED,
        Reason.CREATED,
        Reason.POD_MISSING,
        Reason.POD_PENDING,
        Reason.INITIALIZING,
        Reason.INITIALIZED,
    }
)
_BRIEF = frozenset({Reason.TRANSPORT_DROPPED, Reason.RELAY_UNREACHABLE})


@dataclass(frozen=True)
class Note:
    """One Event: reason of the transition, text for people, whether it is a warning."""

    reason: str
    message: str
    warning: bool
    after: float = 0.0
    """Seconds for which it must stay true before it is told."""


def notes(before: MCPServerStatus, after: MCPServerStatus, plan: Plan, created: str = "") -> tuple[Note, ...]:
    """The Events of one run; `created` is the name of the pod it made."""
    found = []
    if created:
        found.append(Note("Created", f"created pod {created}: {plan.message}", warning=False))
    elif _told(before) != _told(after) and plan.reason is not Reason.POD_PENDING:
        warning = plan.failure is not None or after.phase in _WORRYING
        gave_up = after.phase is Phase.ERROR
        reason = plan.failure.reason if plan.failure is not None and not gave_up else plan.reason
        lasting = LASTING_SECONDS if after.phase is Phase.RECONNECTING and reason in _BRIEF else 0.0
        found.append(Note(reason.value, text.line(_message(after, plan), MAX_NOTE), warning, lasting))
    failed = after.session.last_process_failure if after.session else None
    if failed is not None and (before.session is None or before.session.last_process_failure != failed):
        words = f"a client's process ended, and its session; others go on: {failed.message}"
        found.append(Note("ClientProcessFailed", text.line(words, MAX_NOTE), warning=True))
    return tuple(found)


def _told(status: MCPServerStatus) -> tuple[object, ...]:
    # A failure that was counted before stays in `error` and hides what is waited for there, but not here.
    trouble = _trouble(status)
    if status.phase is Phase.CONNECTED:
        return status.phase, trouble
    failed = status.recovery.failed_epoch if status.recovery else None
    return status.phase, status.error.reason if status.error else None, failed, trouble


def _trouble(status: MCPServerStatus) -> str:
    """Why there is no session, or no list of its tools; "" while it is only on its way."""
    reasons = (item.reason for item in status.conditions if item.type is ConditionType.VERIFIED)
    return next((reason for reason in reasons if reason not in _ON_ITS_WAY), "")


def _message(after: MCPServerStatus, plan: Plan) -> str:
    if after.phase is Phase.CONNECTED and plan.failure is None:
        return f"the session is initialised, {after.tool_count or 0} tools"
    if plan.failure is not None and plan.failure.message not in plan.message:
        return f"{plan.message}: {plan.failure.message}"
    return plan.message
