"""Whether the status told the truth, from samples taken ten times a second.

A sample pairs what the MCPServer said with what was so:

- `ready`: the condition Ready as the API server gave it at that moment; None when it could not be read.
- `works`: whether a call sent to the Service at that same moment was answered with the right result within
  one second. That is the promise of Ready in the words of a client: calls to the published URL pass. A probe
  that is refused, gets an error, breaks or waits for more than a second did not work when it was sent.
- `going`: whatever answers is a pod that is being deleted, because the newest one is, or is not ready yet.
  Last answers are no reason to call the server ready.

A relay whose server is still starting holds calls, and answers them when the session is up. So calls pass
from the first answer on, not from when that call was sent: what was sent before shows nothing.

There are two kinds of lie. *False Ready*: Ready is True while calls do not pass. *False alarm*: Ready is not
True although calls pass and no pod is going. A lie lasts from the first sample that shows it to the first
that does not; so its length is known to a tenth of a second, and a single sample counts as one interval.

Some time is judged apart, because nobody could know better:

- *blind*: the operator or the API server was taken away on purpose. It ends when the operator is ready
  again, the API server answers again; from then on everything counts.
- *dark*: the pod's network was cut. Neither clients nor the operator see the pod; its session is up
  nevertheless. Whatever the status says, it ends with the cut.

Lies of blind and dark times are added up, but do not enter the longest lie.

The suite shares its machine with the cluster. While the suite itself was not run it saw nothing: a sample
whose call was under way then shows neither, whatever became of it.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

INTERVAL = 0.1
LONGEST_LIE = 1.0


class Lie(StrEnum):
    """What was said, and was not so."""

    FALSE_READY = "Ready, but calls do not pass"
    FALSE_ALARM = "not Ready, but calls pass"


@dataclass(frozen=True)
class Sample:
    """One look at one server. `at` in monotonic seconds, as is `answered`, when the call of that moment was;
    `note` has the phase and why a call failed."""

    at: float
    ready: bool | None
    works: bool | None
    going: bool = False
    note: str = ""
    answered: float = 0.0


@dataclass(frozen=True)
class Span:
    """A stretch of time, for one server or (empty) for all."""

    start: float
    end: float
    server: str = ""

    def covers(self, at: float, server: str) -> bool:
        """Whether a moment of a server lies in it."""
        return self.start <= at <= self.end and self.server in ("", server)


@dataclass(frozen=True)
class Told:
    """One lie: which, about whom, when (monotonic seconds) and for how long; `during` names the faults."""

    lie: Lie
    server: str
    start: float
    seconds: float
    note: str = ""
    during: str = ""


def lie_of(sample: Sample) -> Lie | None:
    """The lie that a sample shows, if any."""
    if sample.ready is None or sample.works is None:
        return None
    if sample.ready and not sample.works:
        return Lie.FALSE_READY
    if not sample.ready and sample.works and not sample.going:
        return Lie.FALSE_ALARM
    return None


def known(samples: Sequence[Sample]) -> list[Sample]:
    """The samples; those of calls that were held until the first answer of a row say nothing."""
    found: list[Sample] = []
    for works, row in itertools.groupby(samples, key=lambda sample: sample.works):
        together = list(row)
        first = min(sample.answered for sample in together)
        for sample in together:
            held = bool(works) and sample.at < first
            found.append(replace(sample, works=None) if held else sample)
    return found


def lies(
    server: str, samples: Sequence[Sample], excused: Iterable[Span], stalls: Sequence[Span] = ()
) -> list[Told]:
    """The lies outside the excused time. One that begins there counts from where the excuse ends.

    `stalls`: when the suite itself was not run.
    """
    spans = list(excused)
    told: list[Told] = []
    begun: tuple[Lie, Sample] | None = None
    for sample in known(samples):
        hidden = _covered(spans, sample, server) or _under_way(stalls, sample)
        shown = None if hidden else lie_of(sample)
        if begun is not None and shown is not begun[0]:
            told.append(_lasting(server, *begun, sample.at))
            begun = None
        if shown is not None and begun is None:
            begun = (shown, sample)
    if begun is not None:
        told.append(_lasting(server, *begun, samples[-1].at + INTERVAL))
    return told


def excused_seconds(server: str, samples: Sequence[Sample], excused: Iterable[Span]) -> float:
    """How long the status was not so during the excused time."""
    spans = list(excused)
    shown = [sample for sample in known(samples) if _covered(spans, sample, server) and lie_of(sample)]
    return len(shown) * INTERVAL


def _covered(spans: Sequence[Span], sample: Sample, server: str) -> bool:
    return any(span.covers(sample.at, server) for span in spans)


def _under_way(stalls: Sequence[Span], sample: Sample) -> bool:
    """Whether the call of this sample was not over when a stall began, and sent before that ended."""
    return any(stall.start <= max(sample.at, sample.answered) and sample.at <= stall.end for stall in stalls)


def _lasting(server: str, lie: Lie, first: Sample, end: float) -> Told:
    return Told(lie, server, first.at, round(end - first.at, 2), first.note)
