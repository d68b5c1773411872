"""The decision table: what is asked for.

A healthy server, what is changed, and the plan as it prints itself.
"""

from collections.abc import Callable
from typing import Any

import pytest

from mcp_operator.core.api import ErrorPhase

Json = dict[str, Any]
Change = Callable[[Any], Json]


CASES: list[tuple[str, Change, str, ErrorPhase | None]] = [
    (
        "a resource that is being deleted gets nothing new",
        lambda w: {"deleting": True, "pods": ()},
        "terminating: None -> Terminating (Terminating)",
        None,
    ),
    (
        "a spec that cannot be read leaves the pod alone",
        lambda w: {"invalid": "spec.env: no list"},
        "invalid-spec: GiveUp -> Error (InvalidSpec)",
        ErrorPhase.VALIDATION,
    ),
    (
        "a suspended server loses its pod",
        lambda w: {"spec": w.spec(suspend=True)},
        "suspended: None -> Suspended (Suspended): delete mcp-time-1",
        None,
    ),
    (
        "a suspended server without a pod needs nothing",
        lambda w: {"spec": w.spec(suspend=True), "pods": ()},
        "suspended: None -> Suspended (Suspended)",
        None,
    ),
    (
        "what a deleted resource of the same name left behind is waited for",
        lambda w: {"predecessor": 'Service "mcp-time"', "pods": ()},
        "predecessor: Wait -> Pending (PodMissing) again=12:00:05",
        None,
    ),
    (
        "a foreign object with a child's name is left alone",
        lambda w: {"conflict": 'the Service "mcp-time" belongs to someone else', "pods": ()},
        "foreign-object: GiveUp -> Error (OwnershipConflict) again=12:00:30",
        ErrorPhase.VALIDATION,
    ),
]


@pytest.mark.parametrize(
    ("change", "plan", "error"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_decision(decided: Callable[..., None], change: Change, plan: str, error: ErrorPhase | None) -> None:
    decided(change, plan, error)
