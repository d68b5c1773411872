"""What the outcome of a set of scenarios means for the gate."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Outcome:
    """Checks of one scenario; those that are neither passed nor failed (notes, warnings) do not count."""

    passed: int
    failed: int
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scenarios:
    """Names of the scenarios of a set: those that conformance needs, and those that are only run."""

    scored: tuple[str, ...]
    unscored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Checks of the whole set, and why the gate does not open."""

    passed: int
    failed: int
    problems: tuple[str, ...]

    def line(self, name: str) -> str:
        """The verdict on the set `name` in one line."""
        return f"{name}: {self.passed} passed, {self.failed} failed"


def outcome(checks: Iterable[Mapping[str, Any]]) -> Outcome:
    """The outcome of one scenario from its list of checks."""
    listed = list(checks)
    failed = [check for check in listed if check["status"] == "FAILURE"]
    errors = tuple(f"{check['id']}: {check.get('errorMessage') or check['description']}" for check in failed)
    return Outcome(sum(check["status"] == "SUCCESS" for check in listed), len(failed), errors)


def judge(
    scenarios: Scenarios,
    outcomes: Mapping[str, Outcome],
    exceptions: Mapping[str, str],
    *,
    suite_passed: bool,
    one_process: bool,
) -> Verdict:
    """Hold outcomes against the set.

    `exceptions`: scenario -> why it may fail; `suite_passed`: the suite's own verdict; `one_process`: all
    scenarios were served by one and the same server process.
    """
    failing = [name for name, result in outcomes.items() if result.failed]
    problems = [*_missing(scenarios, outcomes)]
    for name in failing:
        if name not in exceptions:
            problems += [f"{name} fails: {error}" for error in outcomes[name].errors]
    problems += [f"{name} is listed in the baseline without a reason" for name in _bare(exceptions)]
    problems += [
        f"{name} does not fail: take it out of the baseline" for name in exceptions if name not in failing
    ]
    if not suite_passed and not failing:
        problems.append("the suite reports a failure that none of its checks shows")
    if not one_process:
        problems.append("the scenarios were not served by one server process")
    passed, failed = (sum(getattr(o, part) for o in outcomes.values()) for part in ("passed", "failed"))
    return Verdict(passed, failed, tuple(problems))


def _missing(scenarios: Scenarios, outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    for name in (*scenarios.scored, *scenarios.unscored):
        if name not in outcomes:
            yield f"{name} was not run"
    for name in scenarios.scored:
        if name in outcomes and not outcomes[name].passed and not outcomes[name].failed:
            yield f"{name} checked nothing"


def _bare(exceptions: Mapping[str, str]) -> Sequence[str]:
    return [name for name, reason in exceptions.items() if not str(reason or "").strip()]
