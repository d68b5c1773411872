"""What is said of a call is held against what was executed."""

import pytest

from chaoskit.calls import Call, Outcome, judge, outcome_of_error
from chaoskit.truth import Span


def call(outcome: Outcome, name: str = "t", took: float = 0.1) -> Call:
    return Call(name, "raw", 10.0, 10.0 + took, outcome, "said")


@pytest.mark.parametrize(
    ("outcome", "executions", "right"),
    [
        (Outcome.ANSWERED, 1, True),
        (Outcome.ANSWERED, 0, False),
        (Outcome.ANSWERED, 2, False),
        (Outcome.WRONG, 1, False),
        (Outcome.REFUSED, 0, True),
        (Outcome.REFUSED, 1, False),
        (Outcome.UNKNOWN, 0, True),
        (Outcome.UNKNOWN, 1, True),
        (Outcome.UNKNOWN, 2, False),
        (Outcome.TIMED_OUT, 1, True),
        (Outcome.BROKEN, 0, True),
        (Outcome.BROKEN, 2, False),
        (Outcome.UNCLEAR, 0, False),
    ],
)
def test_a_call_is_right_when_the_journal_agrees_with_what_the_client_was_told(
    outcome: Outcome, executions: int, right: bool
) -> None:
    found = judge([call(outcome)], ["t"] * executions)
    assert (found.wrong, found.lost) == (0 if right else 1, 0)
    assert len(found.complaints) == found.wrong
    assert found.outcomes == {outcome.value: 1}


def test_a_call_without_an_answer_is_lost() -> None:
    found = judge([call(Outcome.LOST, took=36.0), call(Outcome.ANSWERED, "other")], ["t", "other"])
    assert (found.calls, found.lost, found.wrong, found.longest) == (2, 1, 0, 36.0)
    assert "no answer within the limit" in found.complaints[0]


def test_an_execution_that_nobody_asked_for_is_wrong() -> None:
    assert judge([], ["stranger"]).complaints == ["stranger: executed, but nobody called"]


@pytest.mark.parametrize(
    ("message", "data", "outcome"),
    [
        ("MCP server 'a' did not answer: x. Whether", {"outcome": "unknown"}, Outcome.UNKNOWN),
        ("MCP tool 'a' on server 'b' timed out after 30 seconds", None, Outcome.TIMED_OUT),
        ("MCP server 'a' is not ready", {"reason": "server_unavailable"}, Outcome.REFUSED),
        ("Session not found. Please reinitialize.", {"reason": "session_not_found"}, Outcome.REFUSED),
        ("MCP server 'a' is not connected", None, Outcome.REFUSED),
        ("something else", "text", Outcome.UNCLEAR),
    ],
)
def test_an_error_says_whether_the_call_was_executed(message: str, data: object, outcome: Outcome) -> None:
    assert outcome_of_error(message, data) is outcome


@pytest.mark.parametrize(("span", "lost"), [((110.0, 140.0), 0), ((130.0, 140.0), 1), ((90.0, 95.0), 1)])
def test_while_a_relay_is_stopped_on_purpose_a_call_may_wait(span: tuple[float, float], lost: int) -> None:
    call = Call("t1", "raw", 100.0, 160.0, Outcome.BROKEN)
    assert judge([call], [], [Span(*span, "raw")]).lost == lost
    assert judge([call], [], [Span(*span, "other")]).lost == 1
