from pathlib import Path
from typing import Any

import pytest

from suitekit import cache, suite
from suitekit.judgement import Outcome, Scenarios, judge, outcome

GOOD, BAD = Outcome(2, 0), Outcome(1, 1, ("a-check: wrong",))
SET = Scenarios(("one", "two"), ("extra",))


def problems(exceptions: dict[str, str] | None = None, **changes: Any) -> tuple[str, ...]:
    outcomes = {"one": GOOD, "two": GOOD, "extra": Outcome(0, 0)} | changes.pop("outcomes", {})
    known = {name: result for name, result in outcomes.items() if result is not None}
    facts = {"suite_passed": True, "one_process": True} | changes
    return judge(SET, known, exceptions or {}, **facts).problems


def test_a_set_that_passes_completely_opens_the_gate() -> None:
    assert problems() == ()


@pytest.mark.parametrize(
    ("exceptions", "changes", "told"),
    [
        ({}, {"outcomes": {"two": BAD}}, "two fails: a-check: wrong"),
        ({}, {"outcomes": {"extra": BAD}}, "extra fails: a-check: wrong"),
        ({}, {"outcomes": {"two": None}}, "two was not run"),
        ({}, {"outcomes": {"extra": None}}, "extra was not run"),
        ({}, {"outcomes": {"one": Outcome(0, 0)}}, "one checked nothing"),
        ({"one": "known fault"}, {}, "one does not fail: take it out of the baseline"),
        ({"gone": "old name"}, {}, "gone does not fail: take it out of the baseline"),
        ({"two": " "}, {"outcomes": {"two": BAD}}, "two is listed in the baseline without a reason"),
        ({}, {"suite_passed": False}, "the suite reports a failure that none of its checks shows"),
        ({}, {"one_process": False}, "the scenarios were not served by one server process"),
    ],
)
def test_whatever_is_not_as_it_must_be_keeps_it_shut(
    exceptions: dict[str, str], changes: dict[str, Any], told: str
) -> None:
    assert problems(exceptions, **changes) == (told,)


def test_a_failure_with_a_reason_is_an_exception_and_still_counts_as_failed() -> None:
    verdict = judge(
        SET,
        {"one": GOOD, "two": BAD, "extra": Outcome(0, 0)},
        {"two": "the server cannot"},
        suite_passed=False,
        one_process=True,
    )
    assert verdict.problems == ()
    assert verdict.line("2025-11-25") == "2025-11-25: 3 passed, 1 failed"


def test_only_success_and_failure_are_counted() -> None:
    checks = [
        {"id": "a", "status": "SUCCESS", "description": "A"},
        {"id": "b", "status": "INFO", "description": "B"},
        {"id": "c", "status": "WARNING", "description": "C"},
        {"id": "d", "status": "FAILURE", "description": "D", "errorMessage": "no d"},
        {"id": "e", "status": "FAILURE", "description": "E"},
    ]
    assert outcome(checks) == Outcome(1, 2, ("d: no d", "e: E"))


def test_the_suite_is_pinned_without_naming_a_registry() -> None:
    lock = (Path(suite.HOME) / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
    assert '"integrity"' in lock


def test_what_is_installed_is_kept_until_its_pins_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pin, filled = tmp_path / "lock", list[Path]()
    pin.write_text("1")
    first = cache.folder("thing", [pin], filled.append)
    assert cache.folder("thing", [pin], filled.append) == first
    pin.write_text("2")
    assert cache.folder("thing", [pin], filled.append) != first
    assert len(filled) == 2


def test_an_installation_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache, "RETRY_PAUSES", (0.0,))
    pin = tmp_path / "lock"
    pin.write_text("1")

    def fail(directory: Path) -> None:
        (directory / "half").touch()
        cache.install(["sh", "-c", "echo no network >&2; exit 3"], directory)

    with pytest.raises(cache.InstallError, match="no network"):
        cache.folder("thing", [pin], fail)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [pin]


def test_an_installation_that_fails_once_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cache, "RETRY_PAUSES", (0.0,))
    cache.install(["sh", "-c", "test -e came || { touch came; echo 502 >&2; exit 1; }"], tmp_path)
    assert "502" in capsys.readouterr().err
