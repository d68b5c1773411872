"""The whole status document, computed in one place after every run from what was seen and decided."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from mcp_operator.core import conditions, failure, text
from mcp_operator.core.api import MCPServerStatus, Phase
from mcp_operator.core.api.status import (
    MAX_CAPABILITIES,
    MAX_TITLE,
    MAX_TOOL_NAME,
    Address,
    ProcessFailure,
    RecoveryStatus,
    ServerError,
    ServerInfo,
    SessionStatus,
    Tool,
)
from mcp_operator.core.failure import Failure
from mcp_operator.core.observation import Observation
from mcp_operator.core.plan import Plan
from mcp_relay_api.status import MAX_DESCRIPTION, MAX_TOOLS, ProcessExit, RelayStatus

# The number of clients moves with every client, and some servers change their tools without end: where only
# these differ, the status is written at most this often.
MINOR_SECONDS = 10
_SHORT = 256
_SHOWN = frozenset({Phase.CONNECTING, Phase.CONNECTED, Phase.RECONNECTING})
_TOOLS = frozenset({"toolCount", "toolsDigest", "tools"})


@dataclass(frozen=True)
class Context:
    """What the status shows beside facts and plan: the image in use and the URL that clients would use."""

    image: str
    url: str


def compute(
    seen: Observation, plan: Plan, context: Context, created: tuple[str, str] | None = None
) -> MCPServerStatus:
    """The status to be written. `created`: name and UID of the pod that this run has made."""
    session, generation = verified(seen, plan), _generation(seen, plan)
    return MCPServerStatus(
        observed_generation=generation,
        phase=plan.phase,
        conditions=conditions.compute(seen, plan, generation, verified=session is not None),
        image=context.image or None,
        address=Address(url=context.url) if session and plan.phase is Phase.CONNECTED else None,
        error=_error(seen, plan),
        recovery=_recovery(seen, plan),
        session=_session(seen, plan, session, created),
        tool_count=session.tool_count if session else None,
        tools_digest=session.tools_digest if session else None,
        tools=_tools(session) if session else (),
    )


def _generation(seen: Observation, plan: Plan) -> int:
    """The generation that the status is about: of a pod that serves on under an older spec, that one's.

    So nobody who waits for Ready takes the old pod for the new one.
    """
    written = seen.status.observed_generation
    return written if plan.changed and written is not None else seen.generation


def verified(seen: Observation, plan: Plan) -> RelayStatus | None:
    """The relay's report while the session is initialised now, else None."""
    pod, told = seen.pod, seen.relay.usable
    up = pod is not None and not pod.deleting and not pod.server.terminated and not pod.ended
    shown = plan.phase in _SHOWN and plan.create_epoch is None
    clear = plan.failure is None or plan.phase is Phase.CONNECTED
    return told if up and shown and clear else None


def _error(seen: Observation, plan: Plan) -> ServerError | None:
    """The last failure that was counted, as long as one is; else what the plan tells of."""
    previous, counted = seen.status.error, plan.budget.failures > 0
    if counted and (plan.passing or plan.failure is None):
        return previous
    if plan.failure is not None:
        return _as_error(plan.failure, previous)
    waits = plan.phase in {Phase.ERROR, Phase.RECREATING} and plan.budget.failed_epoch is not None
    return previous if waits else None


def _as_error(found: Failure, previous: ServerError | None) -> ServerError:
    same = previous is not None and (previous.phase, previous.reason) == (found.phase, found.reason)
    waiting = found.exit_code is None
    time = previous.time if previous is not None and same and waiting else found.time
    return ServerError(
        phase=found.phase,
        reason=found.reason,
        message=found.message,
        exit_code=found.exit_code,
        signal=found.signal,
        time=time,
        stderr_tail=found.stderr_tail,
    )


def _recovery(seen: Observation, plan: Plan) -> RecoveryStatus:
    previous = seen.status.recovery or RecoveryStatus()
    budget = plan.budget
    known = seen.status.session.epoch if seen.status.session is not None else 0
    # A pod that only waited, for a Secret perhaps, was no server that restarts.
    replaced = known > 0 and plan.create_epoch is not None and (seen.pod is None or seen.pod.started)
    # An operator may have ended between making a pod and writing that down.
    untold = known > 0 and any(pod.epoch > known for pod in seen.pods)
    restored = seen.status.phase is Phase.RECONNECTING and plan.phase is Phase.CONNECTED
    return RecoveryStatus(
        action=plan.action,
        # The failure of the last retry is no further retry.
        attempt=min(budget.failures, seen.spec.recovery.max_retries),
        max_retries=seen.spec.recovery.max_retries,
        next_attempt_time=budget.next_attempt,
        restarts=previous.restarts + replaced + untold,
        reconnects=previous.reconnects + (1 if restored else 0),
        consecutive_failures=budget.failures,
        config_hash=budget.config_hash,
        drops_since=budget.drops_since,
        failed_epoch=budget.failed_epoch,
    )


def _session(
    seen: Observation, plan: Plan, told: RelayStatus | None, created: tuple[str, str] | None
) -> SessionStatus | None:
    pod = seen.pod
    epoch = plan.create_epoch or seen.last_epoch
    name, uid = created or (
        (pod.name, pod.uid) if pod is not None and plan.create_epoch is None else (None, None)
    )
    if not epoch and name is None:
        return None
    facts = _told(told) or _remembered(seen.status.session, uid)
    return SessionStatus(pod_name=name, pod_uid=uid, epoch=epoch, **facts)


def _remembered(before: SessionStatus | None, uid: str | None) -> dict[str, Any]:
    """What holds while nothing is heard of the session: when it is heard again, that is nothing new."""
    if before is None or before.pod_uid != uid:
        return {}
    return {"last_process_failure": before.last_process_failure}


def _told(told: RelayStatus | None) -> dict[str, Any]:
    if told is None or told.session is None:
        return {}
    return {
        "since": _moment(told.session.since),
        "clients": told.clients,
        "processes": told.processes,
        "last_process_failure": _process_failure(told.process_failure),
        "protocol_version": text.line(told.session.protocol_version, 32),
        "server_info": _server_info(told.session.server_info),
        "capabilities": capability_paths(told.session.capabilities),
    }


def _process_failure(ended: ProcessExit | None) -> ProcessFailure | None:
    if ended is None:
        return None
    found = failure.from_exit(ended)
    return ProcessFailure(reason=found.reason, message=found.message, time=found.time)


def _server_info(info: dict[str, Any]) -> ServerInfo:
    def said(key: str) -> str | None:
        return text.line(str(info[key]), _SHORT) if info.get(key) else None

    return ServerInfo(name=said("name") or "", title=said("title"), version=said("version"))


def capability_paths(capabilities: dict[str, Any]) -> tuple[str, ...]:
    """What a server declared, as sorted paths of at most two names; what is declared false is left out."""
    paths = set()
    for name, value in capabilities.items():
        if value is None or value is False:
            continue
        paths.add(text.line(name, _SHORT))
        if isinstance(value, dict):
            paths |= {
                text.line(f"{name}.{key}", _SHORT) for key, on in value.items() if on not in (None, False)
            }
    return tuple(sorted(paths))[:MAX_CAPABILITIES]


def _tools(told: RelayStatus) -> tuple[Tool, ...]:
    return tuple(
        Tool(
            name=text.line(tool.name, MAX_TOOL_NAME),
            title=text.line(tool.title, MAX_TITLE) if tool.title else None,
            description=text.line(tool.description, MAX_DESCRIPTION) if tool.description else None,
        )
        for tool in told.tools[:MAX_TOOLS]
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(round(seconds, 3), tz=UTC)


def document(status: MCPServerStatus) -> dict[str, Any]:
    """The JSON object of a status; lists of a session that is not there are left out, not empty."""
    found = status.document()
    if not found.get("tools"):
        found.pop("tools", None)
    session = found.get("session", {})
    if not session.get("capabilities"):
        session.pop("capabilities", None)
    return found


def patch(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """JSON merge patch from one status document to another; {} when they are equal."""
    changed: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = patch(before, value)
            if inner:
                changed[key] = inner
        elif value != before:
            changed[key] = value
    return changed


def counted(before: MCPServerStatus, after: MCPServerStatus) -> bool:
    """Whether a failure was counted from one status to the next."""
    old, new = before.recovery or RecoveryStatus(), after.recovery or RecoveryStatus()
    fresh = (old.config_hash, before.observed_generation) != (new.config_hash, after.observed_generation)
    return new.consecutive_failures > (0 if fresh else old.consecutive_failures)


def minor(change: dict[str, Any]) -> bool:
    """Whether a patch corrects only what is told of clients and their processes, or the list of tools."""
    counts = set(change.get("session") or {"clients"}) <= {"clients", "processes", "lastProcessFailure"}
    return counts and set(change) <= {"session", *_TOOLS}


def minor_due(last_write: datetime | None, now: datetime) -> datetime | None:
    """When a minor change may be written after the last one; None: now."""
    if last_write is None:
        return None
    due = last_write + timedelta(seconds=MINOR_SECONDS)
    return due if due > now else None
