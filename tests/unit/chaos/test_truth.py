"""Lies of the status and their lengths, from samples."""

from dataclasses import replace

import pytest

from chaoskit.truth import INTERVAL, Lie, Sample, Span, Told, excused_seconds, lie_of, lies


def samples(text: str, start: float = 100.0) -> list[Sample]:
    """A sample per word: R or n (Ready or not), ? unreadable; + or - (works or not); g: a pod is going."""
    found = []
    for index, word in enumerate(text.split()):
        ready = {"R": True, "n": False, "?": None}[word[0]]
        found.append(Sample(start + index * INTERVAL, ready, word[1] == "+", going=word.endswith("g")))
    return found


def told(text: str, *spans: Span) -> list[tuple[Lie, float, float]]:
    return [(lie.lie, round(lie.start - 100, 2), lie.seconds) for lie in lies("raw", samples(text), spans)]


@pytest.mark.parametrize(
    ("text", "lie"),
    [
        ("R+", None),
        ("n-", None),
        ("R-", Lie.FALSE_READY),
        ("n+", Lie.FALSE_ALARM),
        ("n+g", None),
        ("R-g", Lie.FALSE_READY),
        ("?-", None),
        ("?+", None),
    ],
)
def test_a_lie_is_a_status_that_the_call_of_the_same_moment_contradicts(text: str, lie: Lie | None) -> None:
    assert lie_of(samples(text)[0]) is lie


def test_a_sample_whose_probe_has_no_result_yet_shows_nothing() -> None:
    assert lie_of(Sample(0, True, None)) is None


def test_a_lie_lasts_to_the_first_sample_that_does_not_show_it() -> None:
    assert told("R+ R- R- R- n- R+") == [(Lie.FALSE_READY, 0.1, 0.3)]


def test_a_single_sample_counts_as_one_interval_also_at_the_end() -> None:
    assert told("R+ R- n-") == [(Lie.FALSE_READY, 0.1, 0.1)]
    assert told("R+ R-") == [(Lie.FALSE_READY, 0.1, 0.1)]


def test_one_kind_of_lie_may_follow_the_other_at_once() -> None:
    assert told("R- n+ n+ R+") == [(Lie.FALSE_READY, 0.0, 0.1), (Lie.FALSE_ALARM, 0.1, 0.2)]


def test_an_unreadable_status_ends_a_lie() -> None:
    assert told("R- ?- ?- R-") == [(Lie.FALSE_READY, 0.0, 0.1), (Lie.FALSE_READY, 0.3, 0.1)]


def test_a_lie_that_begins_in_excused_time_counts_from_its_end() -> None:
    assert told("R- R- R- R- n-", Span(99.0, 100.15)) == [(Lie.FALSE_READY, 0.2, 0.2)]


def test_an_excuse_for_one_server_is_none_for_another() -> None:
    assert told("R- n-", Span(99.0, 101.0, "sdk1")) == [(Lie.FALSE_READY, 0.0, 0.1)]
    assert told("R- n-", Span(99.0, 101.0, "raw")) == []


def test_excused_lies_are_added_up_apart() -> None:
    found = samples("R- R- R- n-")
    assert excused_seconds("raw", found, [Span(99.0, 100.15)]) == pytest.approx(0.2)
    assert excused_seconds("raw", found, []) == 0


def test_calls_pass_from_the_first_answer_on_not_from_when_a_held_call_was_sent() -> None:
    held = [replace(sample, answered=100.35) for sample in samples("n+ n+ n+ n+")]
    prompt = [replace(sample, answered=sample.at + 0.4 + 0.02) for sample in samples("n+ R+", start=100.4)]
    assert lies("raw", [*samples("n- n-", start=99.8), *held, *prompt], []) == [
        Told(Lie.FALSE_ALARM, "raw", 100.4, 0.1)
    ]


def test_no_samples_tell_no_lie() -> None:
    assert lies("raw", [], []) == []
    assert Told(Lie.FALSE_READY, "raw", 1.0, 2.0).during == ""


def test_a_call_that_was_under_way_while_the_suite_stood_still_shows_no_lie() -> None:
    seen = [replace(sample, answered=sample.at + 0.05) for sample in samples("R+ R- R+")]
    late = [seen[0], replace(seen[1], answered=102.2), replace(seen[2], at=102.2, answered=102.25)]
    assert [lie.seconds for lie in lies("raw", late, ())] == [2.1]
    assert lies("raw", late, (), [Span(100.1, 102.2)]) == []


def test_what_was_seen_beside_a_stall_of_the_suite_is_a_lie_still() -> None:
    seen = [replace(sample, answered=sample.at + 0.05) for sample in samples("R- R- R- R- R+")]
    around = lies("raw", seen, (), [Span(100.17, 100.24)])
    assert [(round(lie.start - 100, 2), lie.seconds) for lie in around] == [(0.0, 0.2), (0.3, 0.1)]
