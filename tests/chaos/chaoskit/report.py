"""What a run found: the table, the JSON document, and the last line."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from chaoskit.calls import Judgement
from chaoskit.truth import LONGEST_LIE, Told

SHOWN = 40
USUAL_START_SECONDS = 5.0
# Of the relay's own bar, and what the operator may have grown by during a run.
RELAY_MIB = 40.0
OPERATOR_GROWTH_MIB = 30.0


@dataclass(frozen=True)
class Recovery:
    """One fault and one server: when it was made (monotonic), how long recovery took, and what was wrong.

    `seconds` counts from the end of the disturbance to a status of Ready with a call that passes; `bound` is
    how long it may take.
    """

    number: int
    kind: str
    server: str
    began: float
    over: float
    seconds: float | None
    bound: float
    complaints: tuple[str, ...] = ()


@dataclass
class Findings:
    """Everything that was seen."""

    seed: int
    faults: int = 0
    judgement: Judgement = field(default_factory=Judgement)
    recoveries: list[Recovery] = field(default_factory=list)
    lies: list[Told] = field(default_factory=list)
    excused: dict[str, float] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    memory: dict[str, float] = field(default_factory=dict)
    sessions_lost: int = 0
    slowness: float = 1.0
    stalled: float = 0.0
    """Seconds in which the suite itself was not run, and saw nothing."""
    seconds: float = 0.0

    @property
    def longest_lie(self) -> float:
        """Seconds; 0 without any."""
        return max((told.seconds for told in self.lies), default=0.0)


def attribute(lies: Iterable[Told], recoveries: Sequence[Recovery]) -> list[Told]:
    """Name for each lie the fault of its server that was the last before it began."""
    named = []
    for told in lies:
        before = [r for r in recoveries if r.server == told.server and r.began <= told.start + 0.2]
        during = max(before, key=lambda r: r.began).kind if before else ""
        named.append(Told(**{**asdict(told), "lie": told.lie, "during": during}))
    return named


def failures(found: Findings) -> list[str]:
    """Everything that breaks a promise, one sentence each; empty: passed."""
    said = [*found.judgement.complaints, *found.complaints]
    for recovery in found.recoveries:
        what = f"fault {recovery.number}, {recovery.kind}, {recovery.server}"
        if recovery.seconds is None:
            said.append(f"{what}: not Ready within {recovery.bound:.0f} s")
        elif recovery.seconds > recovery.bound:
            said.append(f"{what}: Ready after {recovery.seconds:.1f} s, bound {recovery.bound:.0f} s")
        said += [f"{what}: {text}" for text in recovery.complaints]
    for told in found.lies:
        if told.seconds > LONGEST_LIE * found.slowness:
            said.append(
                f"{told.server}: {told.lie} for {told.seconds:.1f} s after '{told.during}' ({told.note})"
            )
    if found.sessions_lost:
        said.append(f"{found.sessions_lost} times a client's session was gone")
    return said + _memory(found.memory)


def slowness(pod_start: float) -> float:
    """By how much this machine is too slow, or too busy, for limits in seconds; 1 for one that is not.

    `pod_start`: seconds in which the quickest server became Ready while all of them started.
    """
    return max(1.0, pod_start / USUAL_START_SECONDS)


def _memory(memory: dict[str, float]) -> list[str]:
    said = []
    growth = memory.get("operator_end", 0.0) - memory.get("operator_start", 0.0)
    if growth > OPERATOR_GROWTH_MIB:
        said.append(f"the operator grew by {growth:.0f} MiB")
    for name, mib in memory.items():
        if name.startswith("relay") and mib > RELAY_MIB:
            said.append(f"{name} has {mib:.0f} MiB")
    return said


def table(found: Findings) -> list[str]:
    """A line per kind: how often, recovery median and longest, longest lie, worst first."""
    times: dict[str, list[float]] = defaultdict(list)
    for recovery in found.recoveries:
        if recovery.seconds is not None:
            times[recovery.kind].append(recovery.seconds)
    lies: dict[str, float] = defaultdict(float)
    for told in found.lies:
        lies[told.during] = max(lies[told.during], told.seconds)
    lines = ["| fault | n | recovery, median s | longest s | longest lie s |", "|---|---|---|---|---|"]
    for kind in sorted(times.keys() | lies.keys()):
        seen = sorted(times[kind]) or [0.0]
        middle, longest = seen[len(seen) // 2], seen[-1]
        name = kind or "before the first fault"
        lines.append(f"| {name} | {len(times[kind])} | {middle:.1f} | {longest:.1f} | {lies[kind]:.1f} |")
    return lines


def summary(found: Findings) -> str:
    """The last line."""
    judged = found.judgement
    counts = f"faults {found.faults}, calls {judged.calls}, wrong {judged.wrong}, lost {judged.lost}"
    return f"{counts}, longest lie {found.longest_lie:.2f} s"


def text(found: Findings) -> str:
    """The whole report for people; the summary is its last line."""
    said = failures(found)
    outcomes = ", ".join(f"{name} {count}" for name, count in sorted(found.judgement.outcomes.items()))
    excused = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in found.excused.items())
    memory = ", ".join(f"{name} {mib:.0f} MiB" for name, mib in found.memory.items())
    lines = [
        *table(found),
        f"calls: {outcomes}; longest {found.judgement.longest:.1f} s; sessions lost {found.sessions_lost}",
        f"status wrong in times when nobody could know better: {excused or 'none'}",
        *([f"this machine did not run the suite for {found.stalled:.1f} s"] if found.stalled else []),
        f"memory: {memory}",
        *(f"BROKEN: {sentence}" for sentence in said[:SHOWN]),
        *([f"and {len(said) - SHOWN} more, see the JSON report"] if len(said) > SHOWN else []),
        f"seed {found.seed}, {found.seconds:.0f} s, {len(said)} promises broken{_slow(found)}",
        summary(found),
    ]
    return "\n".join(lines)


def _slow(found: Findings) -> str:
    factor = found.slowness
    return "" if factor == 1 else f"; this machine is busy: a lie may last {factor:.1f} times as long"


def document(found: Findings) -> dict[str, Any]:
    """Everything, for a file."""
    return {
        "seed": found.seed,
        "summary": summary(found),
        "seconds": found.seconds,
        "slowness": found.slowness,
        "stalled": found.stalled,
        "failures": failures(found),
        "outcomes": dict(found.judgement.outcomes),
        "errors": dict(found.judgement.errors.most_common(100)),
        "longestCall": found.judgement.longest,
        "sessionsLost": found.sessions_lost,
        "memory": found.memory,
        "excused": found.excused,
        "recoveries": [asdict(recovery) for recovery in found.recoveries],
        "lies": [asdict(told) for told in found.lies],
        "failedCalls": [asdict(call) for call in found.judgement.failed],
    }
