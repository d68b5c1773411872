"""What has to follow from a fault, and how soon."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from chaoskit import facts
from chaoskit.facts import Facts
from chaoskit.kinds import BY_NAME, KINDS, Effect

BEFORE = Facts(
    ready=True, epoch=3, restarts=2, reconnects=1, failures=0, pod="mcp-raw-3", pod_uid="u3",
    process=(10, 111), relay_restarts=0,
)  # fmt: skip
NEW_POD: dict[str, Any] = {
    "epoch": 4, "restarts": 3, "pod": "mcp-raw-4", "pod_uid": "u4", "process": (20, 222),
}  # fmt: skip
RECREATED, REPLACED = BY_NAME["server process killed"], BY_NAME["pod deleted"]
RELAY, CUT, NOTHING = (
    BY_NAME["relay killed"],
    BY_NAME["launcher connection cut"],
    BY_NAME["containerd restarted"],
)


def test_a_lost_server_gets_one_new_pod_and_one_retry_is_spent() -> None:
    assert facts.complaints(RECREATED, BEFORE, replace(BEFORE, **NEW_POD, failures=1)) == []


def test_a_replaced_pod_costs_no_retry() -> None:
    assert facts.complaints(REPLACED, BEFORE, replace(BEFORE, **NEW_POD)) == []
    assert facts.complaints(REPLACED, replace(BEFORE, failures=2), replace(BEFORE, **NEW_POD)) == []


def test_a_restarted_relay_leaves_pod_and_process_alone() -> None:
    assert facts.complaints(RELAY, BEFORE, replace(BEFORE, relay_restarts=1, reconnects=2)) == []


def test_a_retry_that_was_forgiven_since_is_no_fault() -> None:
    late = replace(BEFORE, **NEW_POD, failures=0, session_seconds=facts.STABLE_SECONDS + 1)
    assert facts.complaints(RECREATED, BEFORE, late) == []


def test_the_age_of_a_session_counts_from_its_handshake() -> None:
    item = {"status": {"session": {"since": "2026-11-30T08:00:00.500Z"}}}
    assert facts.age(item, datetime(2026, 11, 30, 8, 0, 2, tzinfo=UTC)) == 1.5
    assert facts.age({}, datetime(2026, 11, 30, tzinfo=UTC)) == 0


@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        (RECREATED, {**NEW_POD, "failures": 0}, "consecutiveFailures"),
        (RECREATED, {**NEW_POD, "failures": 2}, "consecutiveFailures"),
        (RECREATED, {**NEW_POD, "failures": 1, "restarts": 4}, "not exactly one replacement"),
        (RECREATED, {"failures": 1}, "still the same"),
        (REPLACED, {**NEW_POD, "failures": 1}, "a retry was spent"),
        (REPLACED, {**NEW_POD, "epoch": 5}, "not exactly one replacement"),
        (RELAY, NEW_POD, "the pod was replaced"),
        (RELAY, {"relay_restarts": 1, "process": (30, 333)}, "the server process is another"),
        (CUT, {"relay_restarts": 1}, "the relay was restarted"),
        (CUT, {"failures": 1}, "a retry was spent"),
        (NOTHING, {"restarts": 3}, "restarts went from 2 to 3"),
    ],
)
def test_what_must_not_change_is_told(kind: Any, changes: dict[str, Any], said: str) -> None:
    assert any(said in text for text in facts.complaints(kind, BEFORE, replace(BEFORE, **changes)))


@pytest.mark.parametrize(
    ("kind", "changes", "done"),
    [
        (RECREATED, {}, False),
        (RECREATED, NEW_POD, True),
        (RECREATED, {**NEW_POD, "ready": False}, False),
        (RELAY, {}, False),
        (RELAY, {"relay_restarts": 1}, True),
        (NOTHING, {}, True),
        (NOTHING, {"ready": False}, False),
    ],
)
def test_recovery_is_over_when_what_must_follow_has_followed(
    kind: Any, changes: dict[str, Any], done: bool
) -> None:
    assert facts.followed(kind, BEFORE, replace(BEFORE, **changes)) is done


@pytest.mark.parametrize(("failures", "seconds"), [(0, 12), (1, 14), (2, 18), (3, 18)])
def test_a_lost_server_may_take_its_backoff_and_one_pod_start(failures: int, seconds: float) -> None:
    assert facts.bound(RECREATED, replace(BEFORE, failures=failures), 2.0) == seconds


@pytest.mark.parametrize(("restarts", "seconds"), [(0, 10), (1, 20), (2, 30), (3, 50), (9, 310)])
def test_a_killed_relay_may_take_what_the_node_makes_it_wait(restarts: int, seconds: float) -> None:
    assert facts.bound(RELAY, replace(BEFORE, relay_restarts=restarts), 2.0) == seconds


@pytest.mark.parametrize(
    ("kind", "failures", "left"),
    [(RECREATED, 0, True), (RECREATED, 2, True), (RECREATED, 3, False), (RECREATED, 4, False)]
    + [(kind, 3, True) for kind in (REPLACED, RELAY, CUT, NOTHING)],
)
def test_a_server_is_lost_only_while_it_has_a_retry_left(kind: Any, failures: int, left: bool) -> None:
    assert facts.has_retry(kind, replace(BEFORE, failures=failures)) is left


def test_a_slow_pod_start_is_taken_as_it_was_at_the_beginning() -> None:
    assert facts.bound(RECREATED, BEFORE, 12.0) == 2 + 12 + facts.SLACK_SECONDS


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_fault_of_the_cluster_replaces_all_servers_or_only_the_one_it_means(kind: Any) -> None:
    effect = facts.for_bystander(kind).effect
    assert effect is (Effect.REPLACED if kind.effect is Effect.REPLACED else Effect.UNTOUCHED)


def test_the_facts_of_a_status_are_those_that_stand_there() -> None:
    status = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "recovery": {"restarts": 2, "reconnects": 1, "consecutiveFailures": 1},
        "session": {"epoch": 3, "podName": "mcp-raw-3"},
    }
    found = facts.of_status({"status": status})
    assert found == {
        "ready": True, "epoch": 3, "restarts": 2, "reconnects": 1, "failures": 1, "pod": "mcp-raw-3",
    }  # fmt: skip
    assert facts.of_status({})["ready"] is False
