"""Rows about a running server: what its relay says about the one session."""

from dataclasses import replace
from datetime import datetime, timedelta

from mcp_operator.core import backoff, failure, keys, relay, text, times
from mcp_operator.core.api import ErrorPhase, Phase, Reason, RecoveryAction
from mcp_operator.core.backoff import Budget
from mcp_operator.core.failure import Failure
from mcp_operator.core.observation import contradicted
from mcp_operator.core.plan import Plan
from mcp_operator.core.rules.ending import startup_deadline, unreadable
from mcp_operator.core.rules.row import Case, Row, earliest, left_overs
from mcp_relay_api.status import MAX_PROGRESS, RelayState, RelayStatus

POLL_SECONDS = 5
UNREACHABLE_LIMIT = 3
DROPPED_SECONDS = 1
LAGGING_SECONDS = 1
# A connection that breaks again sooner has not been restored: the time to restore it goes on.
HOLDING_SECONDS = 10


def _not_heard_again_yet(case: Case) -> Plan | None:
    if not (case.seen.relay.unheard and case.seen.served_before):
        return None
    phase = case.seen.status.phase or Phase.CONNECTED
    plan = _running(case, phase, RecoveryAction.NONE, Reason.NOT_OBSERVED, "the relay is being asked")
    return replace(plan, hold=True)


def _cold_start(case: Case) -> Plan | None:
    told = case.seen.relay.status
    if told is not None and (told.state is not RelayState.CONNECTING or case.seen.relay.failures):
        return None
    if told is None and case.seen.relay.failures >= (1 if case.seen.served_before else UNREACHABLE_LIMIT):
        return None
    what = "the server process runs" if case.seen.spec.remote is None else "the remote server is asked"
    message = f"{what}; its answer to `initialize` is awaited"
    if told is not None and told.progress:
        message += f"; it says: {text.line(told.progress, MAX_PROGRESS)}"
    plan = _running(case, _coming_up(case), RecoveryAction.WAIT, Reason.INITIALIZING, message)
    return replace(plan, look_again=startup_deadline(case))


def _unreachable(case: Case) -> Plan | None:
    if not 0 < case.seen.relay.failures < UNREACHABLE_LIMIT:
        return None
    return _troubled(case, Phase.RECONNECTING, RecoveryAction.WAIT, _silence(case))


def _relay_ended(case: Case) -> Plan | None:
    """The node may tell of the relay's end before a poll does: what it said last is no longer so."""
    pod = case.seen.pod
    if pod is None or not relay.stopped(pod.relay):
        return None
    why = relay.cause(pod.relay, case.now) or "the relay has ended"
    found = _transport(case, Reason.RELAY_FAILED, f"{why}; the node starts it again")
    plan = _troubled(case, _coming_up(case), RecoveryAction.WAIT, found)
    return replace(plan, look_again=earliest(plan.look_again, startup_deadline(case), _pod_due(case)))


def _unreadable(case: Case) -> Plan | None:
    view = case.seen.relay
    if not view.unreadable:
        return None
    found = _transport(case, Reason.RELAY_UNREADABLE, unreadable(view.unreadable))
    plan = _troubled(case, _coming_up(case), RecoveryAction.WAIT, found)
    return replace(plan, look_again=startup_deadline(case))


def _unreachable_for_long(case: Case) -> Plan | None:
    if case.seen.relay.failures < UNREACHABLE_LIMIT:
        return None
    plan = _troubled(case, Phase.RECONNECTING, RecoveryAction.RECONNECT, _silence(case))
    return replace(plan, reconnect=True)


def _silence(case: Case) -> Failure:
    """Why the relay does not answer: the node may know, a poll does not."""
    pod, message = case.seen.pod, f"the relay does not answer: {case.seen.relay.message}"
    why = relay.cause(pod.relay, case.now) if pod is not None else ""
    if why:
        return _transport(case, Reason.RELAY_FAILED, f"{message}; before that {why}")
    return _transport(case, Reason.RELAY_UNREACHABLE, message)


def _troubled(case: Case, phase: Phase, action: RecoveryAction, found: Failure) -> Plan:
    plan = _running(case, phase, action, found.reason, found.message)
    look = case.now + timedelta(seconds=POLL_SECONDS)
    return replace(plan, failure=found, passing=True, look_again=look)


def _dropped(case: Case) -> Plan | None:
    told = case.seen.relay.status
    if told is None or told.state not in {RelayState.DROPPED, RelayState.TERMINATING}:
        return None
    since = times.since(told.since, case.now)
    due = since + timedelta(seconds=DROPPED_SECONDS)
    dropped = told.state is RelayState.DROPPED
    reconnect = dropped and case.now >= due
    message = told.error.message if told.error else "the connection between relay and server process broke"
    found = _transport(case, Reason.TRANSPORT_DROPPED, message)
    action = RecoveryAction.RECONNECT if reconnect else RecoveryAction.WAIT
    plan = _troubled(case, Phase.RECONNECTING, action, found)
    return replace(
        plan,
        budget=backoff.dropped(case.budget, since) if dropped else case.budget,
        reconnect=reconnect,
        look_again=plan.look_again if case.now >= due else due,
    )


def _connected(case: Case) -> Plan | None:
    pod, told = case.seen.pod, case.seen.relay.status
    if pod is None or told is None or told.session is None or told.state is not RelayState.CONNECTED:
        return None
    if case.seen.relay.usable is None:
        message = "the session is initialised; its tools are being listed"
        return _running(case, _coming_up(case), RecoveryAction.WAIT, Reason.INITIALIZING, message)
    if not (pod.ready and case.seen.reachable):
        message = "the session is initialised; the Service takes the pod up"
        plan = _running(case, _coming_up(case), RecoveryAction.WAIT, Reason.INITIALIZED, message)
        return replace(plan, look_again=_pod_due(case))
    budget, look = _settle(case, told)
    plan = _running(case, Phase.CONNECTED, RecoveryAction.NONE, Reason.CONNECTED, "clients are served")
    found = keys.problem(case.seen)
    if told.error is not None:
        found = failure.from_relay(told.error, case.now)
    budget = replace(budget, next_attempt=None)
    return replace(plan, budget=budget, failure=found, passing=True, look_again=look)


def _keyless(case: Case) -> Plan | None:
    told = case.seen.relay.usable
    if told is None or not keys.lacking(told):
        return None
    found = keys.problem(case.seen)
    if found is None:
        message = "the session is initialised; the relay is given the keys of spec.auth.jwt.issuer"
        return _running(case, _coming_up(case), RecoveryAction.WAIT, Reason.INITIALIZED, message)
    plan = _running(case, _coming_up(case), RecoveryAction.WAIT, found.reason, found.message)
    return replace(plan, failure=found, passing=True)


def _pod_due(case: Case) -> datetime | None:
    """When to look up a pod that is said not to serve while its relay says that it does; None: never."""
    pod = case.seen.pod
    if pod is None or case.seen.relay.usable is None or not contradicted(pod, case.seen.relay):
        return None
    return case.now + timedelta(seconds=LAGGING_SECONDS)


def _coming_up(case: Case) -> Phase:
    """The phase of a session on its way: once the pod served, it is the same session that comes back."""
    return Phase.RECONNECTING if case.seen.served_before else Phase.CONNECTING


def _settle(case: Case, told: RelayStatus) -> tuple[Budget, datetime | None]:
    """The budget, fresh once the session was stable; else when it will be. Nothing spent, nothing to do."""
    budget, holds = _holding(case, told)
    if holds is not None or told.session is None or not (budget.failures or case.seen.status.error):
        return budget, holds
    stable = times.since(told.session.since, case.now) + timedelta(
        seconds=case.seen.spec.recovery.stable_seconds
    )
    return (backoff.settled(budget), None) if case.now >= stable else (budget, stable)


def _holding(case: Case, told: RelayStatus) -> tuple[Budget, datetime | None]:
    """The budget without earlier breaks once the connection held; else when it will have."""
    if case.budget.drops_since is None:
        return case.budget, None
    holds = times.since(told.since, case.now) + timedelta(seconds=HOLDING_SECONDS)
    return (case.budget, holds) if case.now < holds else (replace(case.budget, drops_since=None), None)


def _transport(case: Case, reason: Reason, message: str) -> Failure:
    return failure.failure(ErrorPhase.TRANSPORT, reason, message, case.now)


def _running(case: Case, phase: Phase, action: RecoveryAction, reason: Reason, message: str) -> Plan:
    return Plan(action, phase, reason, message, case.budget, delete=left_overs(case))


ROWS = (
    Row(
        "Running, connected when an earlier operator wrote so, relay not heard by this one yet",
        "wait for its first answer; the status stays",
        "no",
        _not_heard_again_yet,
    ),
    Row(
        "Running, the relay's container has ended",
        "wait: the node starts it again, it takes up the same session",
        "no",
        _relay_ended,
    ),
    Row(
        "Running, the relay answers with what cannot be read",
        "wait; nothing is ordered, and what served before is left alone",
        "no",
        _unreadable,
    ),
    Row(
        "Running, no session yet, within `startupTimeoutSeconds`",
        "wait (cold start): same process, same handshake",
        "no",
        _cold_start,
    ),
    Row(
        f"Running, relay unreachable, 1st to {UNREACHABLE_LIMIT - 1}nd poll in a row",
        f"wait {POLL_SECONDS} s",
        "no",
        _unreachable,
    ),
    Row(
        f"Running, relay unreachable, {UNREACHABLE_LIMIT}rd poll in a row or later",
        "reconnect: the relay restarts (its liveness probe), never the server",
        "no",
        _unreachable_for_long,
    ),
    Row(
        "Running, transport dropped",
        f"reconnect after {DROPPED_SECONDS} s: same pod, same process, same MCP session",
        "no",
        _dropped,
    ),
    Row(
        "Running, session initialised, the relay without usable keys of `spec.auth.jwt.issuer`",
        "wait: clients get 503; the keys are asked for again after 5 s, then ever later, at most 5 minutes",
        "no",
        _keyless,
    ),
    Row("Running, connected", "nothing", "resets after `stableSeconds`", _connected),
)
