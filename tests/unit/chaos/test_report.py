"""What the last line says, and what makes a run fail."""

import json
from dataclasses import replace

import pytest

from chaoskit import report
from chaoskit.calls import Call, Outcome, judge
from chaoskit.report import Findings, Recovery
from chaoskit.truth import Lie, Told

ROW = Recovery(1, "server process killed", "raw", 10.0, 10.1, 3.0, 12.0)
LIE = Told(Lie.FALSE_READY, "raw", 10.05, 0.2, "refused")


def findings(**changes: object) -> Findings:
    calls = [Call(f"t{n}", "raw", 1.0, 1.1, Outcome.ANSWERED) for n in range(3)]
    given: dict[str, object] = {
        "seed": 5, "faults": 1, "judgement": judge(calls, ["t0", "t1", "t2"]),
        "recoveries": [ROW], "lies": [LIE],
    }  # fmt: skip
    return Findings(**{**given, **changes})  # type: ignore[arg-type]  # fields by name


def test_the_last_line_sums_up() -> None:
    last = report.text(findings()).splitlines()[-1]
    assert last == "faults 1, calls 3, wrong 0, lost 0, longest lie 0.20 s"


def test_a_run_that_kept_all_promises_has_no_failures() -> None:
    assert report.failures(findings()) == []


def test_every_broken_promise_is_a_sentence() -> None:
    lost = judge([Call("t", "raw", 1.0, 37.0, Outcome.LOST)], [])
    found = findings(
        judgement=lost,
        recoveries=[
            replace(ROW, seconds=None),
            replace(ROW, seconds=13.0),
            replace(ROW, complaints=("odd",)),
        ],
        lies=[replace(LIE, seconds=1.5)],
        complaints=["more than one corpse"],
        memory={"operator_start": 60.0, "operator_end": 95.0, "relay_raw_end": 41.0},
    )
    said = "\n".join(report.failures(found))
    for part in ("no answer", "not Ready within 12 s", "Ready after 13.0 s, bound 12 s", "odd", "for 1.5 s"):
        assert part in said
    for part in ("corpse", "operator grew by 35 MiB", "relay_raw_end has 41 MiB"):
        assert part in said
    assert len(report.failures(found)) == 8


def test_a_lie_is_named_after_the_last_fault_of_its_server() -> None:
    rows = [ROW, replace(ROW, kind="pod deleted", began=5.0), replace(ROW, server="sdk1", began=10.01)]
    assert [told.during for told in report.attribute([LIE, replace(LIE, start=1.0)], rows)] == [
        "server process killed",
        "",
    ]


def test_the_table_has_a_line_per_kind_with_median_and_longest() -> None:
    rows = [replace(ROW, seconds=seconds) for seconds in (3.0, 9.0, 4.0)]
    lies = report.attribute([LIE], rows)
    assert report.table(findings(recoveries=rows, lies=lies))[2:] == [
        "| server process killed | 3 | 4.0 | 9.0 | 0.2 |"
    ]


def test_the_document_is_plain_json() -> None:
    document = json.loads(json.dumps(report.document(findings())))
    assert document["summary"] == report.summary(findings())
    assert document["lies"][0]["lie"] == Lie.FALSE_READY.value


@pytest.mark.parametrize(("pod_start", "factor"), [(1.0, 1.0), (5.0, 1.0), (10.0, 2.0)])
def test_a_machine_that_starts_pods_slowly_is_given_more_time_and_the_report_says_so(
    pod_start: float, factor: float
) -> None:
    assert report.slowness(pod_start) == factor
    found = findings(slowness=factor, lies=[replace(LIE, seconds=1.5)])
    assert len(report.failures(found)) == (1 if factor == 1 else 0)
    assert ("this machine is busy" in report.text(found)) is (factor > 1)


def test_a_session_that_was_lost_is_a_broken_promise() -> None:
    assert report.failures(findings(sessions_lost=2)) == ["2 times a client's session was gone"]


def test_the_time_in_which_the_suite_was_not_run_is_told() -> None:
    assert "did not run the suite for 2.5 s" in report.text(findings(stalled=2.5))
    assert "did not run the suite" not in report.text(findings())
