"""The decision table: reconnect or recreate. A pure function over frozen facts; the first row to apply wins.

docs/recovery.md shows these rows; a test holds it against them.
"""

from dataclasses import replace
from typing import Final

from mcp_operator.core import backoff
from mcp_operator.core.api import Phase, Reason, RecoveryAction
from mcp_operator.core.observation import Observation
from mcp_operator.core.plan import Plan
from mcp_operator.core.rules import absence, ending, entry, intent, pending, remote, session
from mcp_operator.core.rules.row import Case, Row, left_overs

ROWS: Final[tuple[Row, ...]] = (
    *intent.ROWS,
    *absence.ROWS,
    *ending.ROWS,
    *pending.ROWS,
    *remote.ROWS,
    *session.ROWS,
)


def decide(seen: Observation) -> Plan:
    """What to do now, why, and when to look again."""
    case = Case(seen, backoff.restore(seen.status, seen.generation, seen.config_hash))
    for row in ROWS:
        plan = row.apply(case)
        if plan is not None:
            return entry.awaited(case, absence.with_change(case, replace(plan, rule=row.name)))
    return _nothing_known(case)


def _nothing_known(case: Case) -> Plan:
    return Plan(
        action=RecoveryAction.WAIT,
        phase=Phase.CONNECTING,
        reason=Reason.NOT_OBSERVED,
        message="the relay has not reported a usable state yet",
        budget=case.budget,
        delete=left_overs(case),
        rule="nothing-known",
    )
