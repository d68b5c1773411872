"""When a relay that does not answer is asked again, and which of its silences count."""

import pytest

from mcp_operator.handlers.relays import _Pace


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def counted(times: list[float], answered_before: bool) -> list[int]:
    clock = Clock()
    pace = _Pace(clock, spacing=5)
    found = []
    for moment in times:
        clock.now = 100.0 + moment
        found.append(pace.failed(answered_before))
    return found


def test_the_first_failure_is_tried_again_and_the_others_count_every_five_seconds() -> None:
    assert counted([0, 0.05, 1, 4.9, 5.05, 9, 10.05], answered_before=True) == [0, 1, 0, 0, 1, 0, 1]


def test_a_relay_that_never_answered_is_starting_for_the_first_five_seconds() -> None:
    assert counted([0, 1, 4.9, 5, 9.9, 10], answered_before=False) == [0, 0, 0, 1, 0, 1]


def test_an_answer_ends_the_row() -> None:
    clock = Clock()
    pace = _Pace(clock, spacing=5)
    assert [pace.failed(True), pace.failed(True)] == [0, 1]
    pace.answered()
    assert not pace.failing
    assert [pace.failed(True), pace.failed(True)] == [0, 1]


def test_retries_start_quickly_and_slow_down_to_a_second() -> None:
    pace = _Pace(Clock(), spacing=5)
    delays = []
    for _ in range(40):
        pace.failed(True)
        delays.append(pace.delay())
    assert delays[:20] == [pytest.approx(0.05)] * 20
    assert delays == sorted(delays)
    assert delays[-1] == 1.0
