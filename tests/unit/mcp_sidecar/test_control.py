from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_relay_api.status import RelayStatus
from mcp_sidecar.core import control
from mcp_sidecar.core.document import Exit, Facts, Process, render
from mcp_sidecar.core.lines import Oversized

NOW = 1_764_470_000.0
HELLO = {"incarnation": "abc", "pid": 17, "startTime": 1_764_469_000.5}
EXIT = {
    "exitCode": 137,
    "signal": "SIGKILL",
    "reason": "Signaled",
    "message": "m",
    "stderrTail": "e",
    "time": 5.0,
}
WILD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=5,
)


def test_a_process_and_its_end_are_read_as_they_were_told() -> None:
    assert control.process(HELLO, NOW) == Process("abc", 17, 1_764_469_000.5)
    assert control.ended(EXIT, NOW) == Exit(137, "SIGKILL", "Signaled", "m", 5.0, "e")
    assert control.drain_seconds({"drainSeconds": 6}) == 6.0
    told = {"bytes": 9, "head": "é", "tail": "9}"}
    assert control.oversized(told) == Oversized(9, "é".encode(), b"9}")


@pytest.mark.parametrize(
    ("value", "read"), [(0, 0), (7, 7), (-1, None), (True, None), (2.0, None), ("7", None), (None, None)]
)
def test_a_count_of_lines_is_a_whole_number_or_unknown(value: Any, read: int | None) -> None:
    assert control.lines_taken({**HELLO, "linesTaken": value}) == read
    assert control.lines_taken(HELLO) is None


@pytest.mark.parametrize("incarnation", [None, "", 5, "x" * 1000, ["a"]])
def test_a_process_without_a_name_is_refused(incarnation: Any) -> None:
    with pytest.raises(control.ControlError, match="incarnation"):
        control.process({**HELLO, "incarnation": incarnation}, NOW)


@pytest.mark.parametrize(
    ("key", "value", "field", "read"),
    [
        ("exitCode", "many", "exit_code", 255),
        ("exitCode", 10**30, "exit_code", 255),
        ("exitCode", -1, "exit_code", 255),
        ("exitCode", True, "exit_code", 255),
        ("signal", "S" * 40, "signal", None),
        ("signal", 9, "signal", None),
        ("reason", None, "reason", "Exited"),
        ("message", {"a": 1}, "message", ""),
        ("message", "m" * 5000, "message", "m" * 1024),
        ("time", 1e300, "time", NOW),
        ("time", "soon", "time", NOW),
        ("time", float("nan"), "time", NOW),
        ("time", 10**400, "time", NOW),
        ("stderrTail", "a" * 5000 + "b" * 2048, "stderr_tail", "b" * 2048),
    ],
)
def test_of_an_end_only_the_value_that_makes_no_sense_is_replaced(
    key: str, value: Any, field: str, read: Any
) -> None:
    assert getattr(control.ended({**EXIT, key: value}, NOW), field) == read


@given(st.dictionaries(st.sampled_from([*HELLO, *EXIT, "drainSeconds", "bytes", "head", "tail"]), WILD))
def test_no_message_hurts(message: dict[str, Any]) -> None:
    message["incarnation"] = "abc"
    facts = Facts(process=control.process(message, NOW), exit=control.ended(message, NOW))
    document = render(facts, "i", 1, 1, 1)
    assert RelayStatus.model_validate_json(document).exit is not None
    assert len(document) < 30_000
    assert control.drain_seconds(message) >= 0
    assert control.oversized(message).size >= 0
