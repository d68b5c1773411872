import pytest

from mcp_sidecar.core.bucket import NONE, Limits, take


def passed(limits: Limits, times: list[float]) -> list[float]:
    """For each call the seconds it would have to wait, 0.0 for one that passes."""
    spread, waits = 0.0, []
    for now in times:
        spread, wait = take(spread, now, limits)
        waits.append(wait)
    return waits


@pytest.mark.parametrize(
    ("limits", "times", "waits"),
    [
        (Limits(per_minute=60, burst=1), [100, 100, 100.5, 101], [0, 1, 0.5, 0]),
        (Limits(per_minute=60, burst=3), [100] * 4, [0, 0, 0, 1]),
        (Limits(per_minute=60, burst=3), [100, 100, 100, 102, 102, 102], [0, 0, 0, 0, 0, 1]),
        (Limits(per_minute=60, burst=2), [100, 500, 500, 500], [0, 0, 0, 1]),
        (Limits(per_minute=6, burst=1), [100, 105, 109, 110], [0, 5, 1, 0]),
        (Limits(per_minute=1), [100, 100], [0, 60]),
        (Limits(per_minute=30), [100] * 6, [0, 0, 0, 0, 0, 2]),
        (Limits(per_minute=6_000_000, burst=2), [100, 100, 100], [0, 0, 0.00001]),
    ],
    ids=[
        "one a second",
        "a burst of three",
        "two seconds bring two more",
        "quiet brings no more than the burst",
        "waiting costs nothing",
        "one a minute may come at once",
        "without a burst it is what ten seconds bring",
        "many a second",
    ],
)
def test_calls_pass_as_often_as_the_limit_says(
    limits: Limits, times: list[float], waits: list[float]
) -> None:
    assert passed(limits, times) == pytest.approx(waits, abs=1e-5)


def test_in_the_long_run_exactly_the_rate_passes() -> None:
    limits = Limits(per_minute=600, burst=7)
    waits = passed(limits, [1000 + step / 100 for step in range(6000)])
    assert waits.count(0.0) == pytest.approx(600 + 7, abs=1)


def test_a_refused_call_changes_nothing() -> None:
    limits = Limits(per_minute=60, burst=1)
    spread, _ = take(0.0, 100.0, limits)
    again, wait = take(spread, 100.0, limits)
    assert (again, wait) == (spread, 1.0)


def test_only_limits_that_limit_something_are_any() -> None:
    assert not NONE
    assert not Limits(burst=5)
    assert Limits(per_minute=1)
    assert Limits(concurrent=1)
