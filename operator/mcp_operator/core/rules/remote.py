"""Rows about a server that runs somewhere else: nothing that is done to the pod could help it.

Its relay tries again by itself, at the pace of `spec.recovery`; none of this costs a retry.
"""

import ipaddress
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from mcp_operator.core import failure, text
from mcp_operator.core.api import EgressClass, Phase, Reason, RecoveryAction
from mcp_operator.core.api.status import MAX_MESSAGE
from mcp_operator.core.failure import Failure
from mcp_operator.core.plan import Plan
from mcp_operator.core.rules.row import Case, Row, left_overs
from mcp_relay_api.status import RelayState, RelayStatus

# No retry of the relay's helps against these: something has to be changed, here or there.
_FINAL: Final = frozenset({Reason.REMOTE_DENIED, Reason.REMOTE_REFUSED})


def _refused(case: Case) -> Plan | None:
    told = _trouble(case)
    if told is None or told.error is None:
        return None
    found = failure.from_relay(told.error, case.now)
    if told.state is not RelayState.REFUSED and found.reason not in _FINAL:
        return None
    plan = _waiting(case, Phase.ERROR, found)
    return replace(plan, action=RecoveryAction.GIVE_UP)


def _away(case: Case) -> Plan | None:
    told = _trouble(case)
    if told is None or told.error is None:
        return None
    found = _hinted(case, failure.from_relay(told.error, case.now))
    return _waiting(case, Phase.RECONNECTING if _served(case) else Phase.CONNECTING, found)


def _trouble(case: Case) -> RelayStatus | None:
    """The report of a relay that has no session with a remote server."""
    view = case.seen.relay
    if case.seen.spec.remote is None or case.seen.pod is None or not view.answering or view.status is None:
        return None
    known = {RelayState.CONNECTING, RelayState.DROPPED, RelayState.REFUSED}
    return view.status if view.status.state in known else None


def _served(case: Case) -> bool:
    told = case.seen.relay.status
    return case.seen.served_before or (told is not None and told.state is RelayState.DROPPED)


def _waiting(case: Case, phase: Phase, found: Failure) -> Plan:
    return Plan(
        action=RecoveryAction.WAIT,
        phase=phase,
        reason=found.reason,
        message=found.message,
        budget=case.budget,
        failure=found,
        passing=True,
        delete=left_overs(case),
    )


def _hinted(case: Case, found: Failure) -> Failure:
    """With the cure of a mistake that is easily made: the default policy leads to public addresses only."""
    remote = case.seen.spec.remote
    if remote is None or found.reason is not Reason.REMOTE_UNREACHABLE:
        return found
    if case.seen.spec.network.egress is not EgressClass.INTERNET or not inside(remote.url):
        return found
    hint = "spec.network.egress Internet leads to no address inside the cluster: choose Custom, or All"
    return replace(found, message=text.line(f"{found.message}; {hint}", MAX_MESSAGE))


def inside(url: str) -> bool:
    """Whether the host of a URL looks like one of the cluster or of a private network."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith((".svc", ".local", ".internal"))


ROWS = (
    Row(
        "remote server, it refuses the session or what is sent to it",
        "phase Error; its relay asks again every `retryAfterErrorSeconds`; the pod stays",
        "no",
        _refused,
    ),
    Row(
        "remote server, it is away or has lost the session",
        "wait: its relay tries again, after the seconds in `backoffSeconds`; the pod stays",
        "no",
        _away,
    ),
)
