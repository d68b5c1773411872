"""Why something does not work: one value for every stage, and how it is read from what nodes report."""

import json
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from mcp_operator.core import text
from mcp_operator.core.api import ErrorPhase, Reason
from mcp_operator.core.api.status import MAX_MESSAGE, ServerError
from mcp_operator.core.observation import ContainerFacts, PodFacts
from mcp_relay_api import paths
from mcp_relay_api.status import EXIT_CODES, MAX_SIGNAL, MAX_STDERR_TAIL, ProcessExit, RelayError

OOM: Final = "OOMKilled"
# The launcher's word for the same; it knows at once what the node learns by an event of its own time.
_OUT_OF_MEMORY: Final = "OutOfMemory"
# Not the container's limit, but what the launcher was told for each process.
_PROCESS_LIMIT: Final = "MemoryLimitExceeded"
_NOT_STARTED: Final = frozenset({"StartError", "ContainerCannotRun", "RunContainerError"})
_START_REASONS: Final = {
    "CommandNotFound": Reason.COMMAND_NOT_FOUND,
    "PermissionDenied": Reason.PERMISSION_DENIED,
    "StartFailed": Reason.START_FAILED,
}
_SIGNALS: Final = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
    9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
}  # fmt: skip
_SIGNAL_BASE: Final = 128
# What the relay says of a remote server it says in the words of the API.
_REMOTE_REASONS: Final = {
    str(reason): reason
    for reason in (
        Reason.REMOTE_UNREACHABLE,
        Reason.REMOTE_UNAVAILABLE,
        Reason.REMOTE_DENIED,
        Reason.REMOTE_REFUSED,
        Reason.SESSION_LOST,
        Reason.STARTUP_TIMEOUT,
    )
}
MAX_LAST_WORDS: Final = 200
# Lines of npm that say nothing about the cause, and the first line of a cause: `npm error 404 Not Found - …`.
_TRAILER: Final = re.compile(
    r"npm (notice|warn)\b|npm (error|ERR!)( A complete log.*| .*\.log|\s*)$|Node\.js v\d"
)
_NPM_CAUSE: Final = re.compile(r"npm (error|ERR!) (?!code |errno |syscall |path )\S+ .")
_NODE: Final = re.compile(r"Node\.js v\d")
_ERROR: Final = re.compile(r"(\w+ )?\w*Error\b.*:")
# How a pod can end as a whole, without its containers telling: reason of the pod's status -> ours.
_POD_REASONS: Final = {
    "Evicted": (ErrorPhase.PROCESS, Reason.EVICTED),
    "Preempting": (ErrorPhase.PROCESS, Reason.EVICTED),
    "NodeLost": (ErrorPhase.PROCESS, Reason.NODE_LOST),
    "NodeShutdown": (ErrorPhase.PROCESS, Reason.NODE_LOST),
    "Terminated": (ErrorPhase.PROCESS, Reason.NODE_LOST),
    "Shutdown": (ErrorPhase.PROCESS, Reason.NODE_LOST),
    "NodeAffinity": (ErrorPhase.SCHEDULING, Reason.UNSCHEDULABLE),
    "UnexpectedAdmissionError": (ErrorPhase.ADMISSION, Reason.ADMISSION_REFUSED),
}


@dataclass(frozen=True)
class Failure:
    """One failure as `status.error` shows it. Texts are clean and bounded."""

    phase: ErrorPhase
    reason: Reason
    message: str
    time: datetime
    exit_code: int | None = None
    signal: str | None = None
    stderr_tail: str | None = None


def failure(phase: ErrorPhase, reason: Reason, message: str, time: datetime) -> Failure:
    """A failure without a process behind it."""
    return Failure(phase, reason, text.line(message, MAX_MESSAGE), time)


def remembered(error: ServerError | None) -> Failure | None:
    """The failure that a status tells of; None if it tells of none that this version knows."""
    if error is None or error.reason not in set(Reason):
        return None
    return Failure(
        phase=error.phase,
        reason=Reason(error.reason),
        message=error.message,
        time=error.time,
        exit_code=error.exit_code,
        signal=error.signal,
        stderr_tail=error.stderr_tail,
    )


def from_pod(pod: PodFacts, now: datetime) -> Failure:
    """Why a pod ended, best source first: its own reason, the server's container, the pod's message."""
    known = _POD_REASONS.get(pod.reason) or (
        (ErrorPhase.SCHEDULING, Reason.UNSCHEDULABLE) if pod.reason.startswith("OutOf") else None
    )
    if known is not None:
        return failure(*known, pod.message or f"the pod ended: {pod.reason}", pod.server.finished_at or now)
    if pod.server.terminated:
        return from_container(pod.server, now)
    message = pod.message or f"the pod ended in phase {pod.phase}"
    return failure(ErrorPhase.PROCESS, Reason.PROCESS_EXITED, message, now)


def from_container(server: ContainerFacts, now: datetime) -> Failure:
    """Why the server's container ended: kubelet's words for memory and start, the launcher's for the rest."""
    time = server.finished_at or now
    if server.reason in _NOT_STARTED:
        message = f"the node could not start the container: {server.message or server.reason}"
        return failure(ErrorPhase.CONTAINER_START, Reason.CONTAINER_START_FAILED, message, time)
    exit_ = _launcher_exit(server, time)
    return killed_for_memory(from_exit(exit_)) if server.reason == OOM else from_exit(exit_)


def from_exit(exit_: ProcessExit) -> Failure:
    """Why the process ended, from the launcher's report."""
    reason, phase = _exit_reason(exit_)
    found = Failure(
        phase=phase,
        reason=reason,
        message=text.line(_exit_message(exit_, reason), MAX_MESSAGE),
        time=datetime.fromtimestamp(exit_.time, tz=UTC),
        exit_code=exit_.exit_code,
        signal=text.line(exit_.signal, MAX_SIGNAL) if exit_.signal else None,
        stderr_tail=text.tail(exit_.stderr_tail, MAX_STDERR_TAIL) or None,
    )
    if exit_.reason == _PROCESS_LIMIT:
        message = f"{exit_.message}: raise spec.session.processMemoryLimit"
        return replace(found, reason=Reason.OOM_KILLED, message=text.line(message, MAX_MESSAGE))
    return killed_for_memory(found) if exit_.reason == _OUT_OF_MEMORY else found


def from_relay(error: RelayError, now: datetime) -> Failure:
    """Why the session cannot be used, in the relay's words."""
    if error.reason == paths.REASON_OVERRIDES:
        return failure(error.phase, Reason.TOOL_OVERRIDES_UNMATCHED, error.message, now)
    reason = _REMOTE_REASONS.get(error.reason) or {
        ErrorPhase.INITIALIZE: Reason.INITIALIZE_FAILED,
        ErrorPhase.LIST_TOOLS: Reason.LIST_TOOLS_FAILED,
        ErrorPhase.TRANSPORT: Reason.TRANSPORT_DROPPED,
    }.get(error.phase, Reason.INITIALIZE_FAILED)
    return failure(error.phase, reason, error.message or error.reason, now)


def killed_for_memory(found: Failure) -> Failure:
    """The same end, with the cause that only the node knows."""
    message = (
        "the server needed more memory than its limit and was killed: raise spec.resources.limits.memory"
    )
    return replace(found, phase=ErrorPhase.PROCESS, reason=Reason.OOM_KILLED, message=message)


def _exit_reason(exit_: ProcessExit) -> tuple[Reason, ErrorPhase]:
    started = _START_REASONS.get(exit_.reason)
    if started is not None:
        return started, ErrorPhase.PROCESS_START
    return (Reason.PROCESS_SIGNALED if exit_.signal else Reason.PROCESS_EXITED), ErrorPhase.PROCESS


def _exit_message(exit_: ProcessExit, reason: Reason) -> str:
    if reason is Reason.COMMAND_NOT_FOUND:
        detail = exit_.message or "no such file"
        return f"spec.command: the image has no such program ({detail}): correct the command or the image"
    if reason is Reason.PERMISSION_DENIED:
        return (
            f"spec.command: the file may not be executed ({exit_.message}): correct the command or the image"
        )
    if reason is Reason.START_FAILED:
        return f"the server could not be started: {exit_.message}"
    if exit_.signal:
        return f"the server process was ended by {exit_.signal}"
    if exit_.exit_code == 0:
        return "the server process exited with 0: it must keep running while its session is wanted"
    said = _last_words(exit_.stderr_tail)
    return f"the server process exited with {exit_.exit_code}" + (f": {said}" if said else "")


def _last_words(tail: str) -> str:
    """The last line that says something: what most programs write there is why they give up.

    npm says why first, and ends with where its log is; Node.js ends with its own version.
    """
    lines = text.tail(tail, MAX_STDERR_TAIL).splitlines()
    spoken = [line for line in lines if line.strip() and not _TRAILER.match(line)]
    if not spoken:
        return ""
    causes = [line for line in spoken if _NPM_CAUSE.match(line)]
    if _NODE.match(next(line for line in reversed(lines) if line.strip())):
        causes = causes or [line for line in spoken if _ERROR.match(line)]
    return text.line((causes or spoken[-1:])[0], MAX_LAST_WORDS)


def _launcher_exit(server: ContainerFacts, time: datetime) -> ProcessExit:
    """The launcher's termination message; without one (it was killed itself), the container's exit code."""
    code = _exit_code(server.exit_code, -1)
    signal = _SIGNALS.get(code - _SIGNAL_BASE) if code > _SIGNAL_BASE else None
    told = _termination_message(server.message)
    return ProcessExit(
        exit_code=_exit_code(told.get("exitCode"), code),
        signal=text.line(str(told["signal"]), MAX_SIGNAL) if told.get("signal") else None if told else signal,
        reason=str(told.get("reason") or ("Signaled" if signal else "Exited")),
        message=str(told.get("message") or ""),
        time=time.timestamp(),
        stderr_tail=str(told.get("stderrTail") or ""),
    )


def _exit_code(value: Any, otherwise: int) -> int:
    """The server's image may hold another launcher, so that anything may come."""
    known = isinstance(value, int) and not isinstance(value, bool) and value in EXIT_CODES
    return value if known else otherwise


def _termination_message(message: str) -> dict[str, Any]:
    try:
        told = json.loads(message)
    except (ValueError, RecursionError):  # no JSON, or nested beyond reason
        return {}
    return told if isinstance(told, dict) else {}
