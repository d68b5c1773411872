"""Rows about a server that has failed: each costs a retry, counted once per pod."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from mcp_operator.core import failure, relay, text, times
from mcp_operator.core.api import ErrorPhase, Reason
from mcp_operator.core.api.status import MAX_MESSAGE
from mcp_operator.core.failure import Failure
from mcp_operator.core.observation import PodFacts
from mcp_operator.core.plan import Plan
from mcp_operator.core.rules.row import Case, Row, fail
from mcp_relay_api import paths
from mcp_relay_api.status import MAX_PROGRESS, RelayError, RelayState, RelayStatus

# Reason in the relay's report of a process that runs on but cannot be used -> reason and message.
_CLOSED: Final = {
    paths.REASON_STDOUT_CLOSED: (
        Reason.STDOUT_CLOSED,
        "the server closed its stdout but keeps running: no answer can come, stdout must stay open",
    ),
    paths.REASON_STDIN_CLOSED: (
        Reason.STDIN_CLOSED,
        "the server closed its stdin but keeps running: no call can reach it, stdin must stay open",
    ),
}


def _pod_ended(case: Case) -> Plan | None:
    pod = case.seen.pod
    if pod is None or not pod.ended:
        return None
    return fail(case, _detailed(case, failure.from_pod(pod, case.now)), pod.epoch)


def _server_terminated(case: Case) -> Plan | None:
    pod = case.seen.pod
    if pod is None or not pod.server.terminated:
        return None
    return fail(case, _detailed(case, failure.from_container(pod.server, case.now)), pod.epoch)


def _detailed(case: Case, found: Failure) -> Failure:
    """What the relay was told by the launcher, where the node knows nothing better.

    A launcher that is killed leaves no termination message.
    """
    told = case.seen.relay.status
    if told is None or told.exit is None or found.stderr_tail is not None:
        return _hinted(case, found)
    if found.reason not in {Reason.PROCESS_EXITED, Reason.PROCESS_SIGNALED, Reason.OOM_KILLED}:
        return _hinted(case, found)
    exited = failure.from_exit(told.exit)
    return failure.killed_for_memory(exited) if found.reason is Reason.OOM_KILLED else exited


def _hinted(case: Case, found: Failure) -> Failure:
    """With the cure of a mistake that is easily made: a whole command line as the name of the program."""
    program = case.seen.spec.command[0] if case.seen.spec.command else ""
    if found.reason is not Reason.COMMAND_NOT_FOUND or len(program.split()) < 2:
        return found
    words = json.dumps(program.split(), ensure_ascii=False)
    hint = f"{found.message}; its first item has blanks: write one list item for each word, as in {words}"
    return replace(found, message=text.line(hint, MAX_MESSAGE))


def _relay_saw_exit(case: Case) -> Plan | None:
    pod, told = _told(case)
    if pod is None or told is None or told.exit is None:
        return None
    return fail(case, _hinted(case, failure.from_exit(told.exit)), pod.epoch)


def _initialize_refused(case: Case) -> Plan | None:
    pod, told = _told(case)
    if pod is None or told is None or told.state is not RelayState.REFUSED or told.error is None:
        return None
    if case.seen.spec.remote is not None:  # another pod would be refused, too
        return None
    return fail(case, failure.from_relay(told.error, case.now), pod.epoch)


def _stdio_closed(case: Case) -> Plan | None:
    pod, told = _told(case)
    if pod is None or told is None or told.state is not RelayState.DROPPED or told.error is None:
        return None
    closed = _CLOSED.get(told.error.reason)
    if closed is None:
        return None
    return fail(case, failure.failure(ErrorPhase.PROCESS, *closed, case.now), pod.epoch)


def _startup_deadline_passed(case: Case) -> Plan | None:
    pod, told = _told(case)
    deadline = startup_deadline(case)
    if pod is None or deadline is None or case.now < deadline:
        return None
    return fail(case, _too_late(case, told), pod.epoch)


def _condemned(case: Case) -> Plan | None:
    """What the relay says on its own way out must not hide that the pod has failed."""
    pod, told = _told(case)
    if pod is None or not case.budget.counted(pod.epoch):
        return None
    healthy = told is not None and told.state is RelayState.CONNECTED and case.seen.relay.answering
    return None if healthy else fail(case, None, pod.epoch)


def startup_deadline(case: Case) -> datetime | None:
    """When the session must be up at the latest; None while nothing runs, or when it is up.

    A relay that restarts without a session to adopt gets the same time again: that is no fault of the server.
    A connection that breaks again and again does not: its time counts from the first break.
    """
    pod, told = case.seen.pod, case.seen.relay.status
    if case.seen.spec.remote is not None:  # its relay goes on trying
        return None
    if pod is None or not pod.server.running or pod.server.started_at is None:
        return None
    if told is not None and told.state not in {RelayState.CONNECTING, RelayState.DROPPED}:
        return None
    if told is None and (case.seen.relay.unheard or (case.seen.relay.unreadable and case.seen.served_before)):
        return None
    start = pod.server.started_at
    if told is not None:
        start = max(start, _broken_since(case, told))
    return start + timedelta(seconds=case.seen.spec.session.startup_timeout_seconds)


def _broken_since(case: Case, told: RelayStatus) -> datetime:
    first = case.budget.drops_since
    if told.state is RelayState.DROPPED and first is not None:
        return first
    return times.since(told.since, case.now)


def _too_late(case: Case, told: RelayStatus | None) -> Failure:
    seconds = case.seen.spec.session.startup_timeout_seconds
    blamed = _blamed_relay(case, seconds)
    if blamed is not None:
        return blamed
    if told is not None and told.state is RelayState.DROPPED:
        message = f"the connection to the server process could not be restored within {seconds} s"
        return failure.failure(ErrorPhase.TRANSPORT, Reason.TRANSPORT_DROPPED, message, case.now)
    detail = _noise(case, told.error) if told is not None and told.error is not None else ""
    message = (
        f"the server did not answer `initialize` within {seconds} s{detail}: does it speak MCP on stdout? "
        "A slow start needs a larger spec.session.startupTimeoutSeconds"
    )
    found = failure.failure(ErrorPhase.INITIALIZE, Reason.STARTUP_TIMEOUT, message, case.now)
    said = text.line(told.progress, MAX_PROGRESS) if told is not None else ""
    return replace(found, stderr_tail=said or None)


def _noise(case: Case, error: RelayError) -> str:
    """What the relay has seen of the server beside silence, and where to read it."""
    said = error.message.partition(". ")[2] if error.reason == Reason.STARTUP_TIMEOUT else error.message
    said = said.removesuffix(", see the log of the relay")
    pod = case.seen.pod
    if not said or pod is None:
        return ""
    return f" ({said}: kubectl logs --namespace {case.seen.namespace} {pod.name} --container relay)"


def _blamed_relay(case: Case, seconds: int) -> Failure | None:
    """The failure of the relay, while it is that which does not work: the server has no part in it."""
    pod, view = case.seen.pod, case.seen.relay
    late = f"the session could not be initialised within {seconds} s"
    if view.unreadable:
        message = f"{late}: {unreadable(view.unreadable)}"
        return failure.failure(ErrorPhase.TRANSPORT, Reason.RELAY_UNREADABLE, message, case.now)
    broken = relay.cause(pod.relay, case.now) if pod is not None and not view.answering else ""
    if not broken:
        return None
    return failure.failure(ErrorPhase.TRANSPORT, Reason.RELAY_FAILED, f"{late}: {broken}", case.now)


def unreadable(why: str) -> str:
    """What is told of a report that cannot be read."""
    return f"the relay's report cannot be read ({why}): does the relay's image fit the operator's?"


def _told(case: Case) -> tuple[PodFacts | None, RelayStatus | None]:
    return case.seen.pod, case.seen.relay.status


ROWS = (
    Row(
        "Succeeded or Failed (also Evicted, OOMKilled)",
        "recreate after the backoff; the dead pod stays for its logs until then",
        "yes",
        _pod_ended,
    ),
    Row(
        "server container terminated (any code, 0 too), whatever the phase",
        "recreate after the backoff",
        "yes",
        _server_terminated,
    ),
    Row("the relay saw the process exit", "recreate after the backoff", "yes", _relay_saw_exit),
    Row("the server refused `initialize`", "recreate after the backoff", "yes", _initialize_refused),
    Row(
        "the server closed its stdin or stdout but runs on: nothing reaches it, or is heard of it, any more",
        "recreate after the backoff",
        "yes",
        _stdio_closed,
    ),
    Row(
        "Running, no session, `startupTimeoutSeconds` passed",
        "recreate after the backoff",
        "yes",
        _startup_deadline_passed,
    ),
    Row(
        "failed before, and its relay does not say that the session is up after all",
        "recreate after the backoff",
        "counted already",
        _condemned,
    ),
)
