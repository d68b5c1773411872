"""What became of each call, and whether that was right.

Each call carries a token of its own. The server writes the token into a journal that outlives it, and then
answers with the token. So it can be said of every call whether it was executed, how often, and whether what
the client was told about it is true.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from chaoskit.truth import Span

MAX_DETAIL = 120
# The relay gives up after 30 s; what has no answer then will get none.
LIMIT_SECONDS = 36.0


class Outcome(StrEnum):
    """What the client got."""

    ANSWERED = "answered"
    """The result, with the right token."""
    WRONG = "wrong"
    """A result or an id that belongs to something else."""
    REFUSED = "refused"
    """An error that says: not executed."""
    UNKNOWN = "unknown"
    """An error that says: perhaps executed."""
    TIMED_OUT = "timed out"
    """The relay's error after the call's limit."""
    BROKEN = "broken"
    """The connection was refused or broke: nothing is known."""
    UNCLEAR = "unclear"
    """An error that says neither."""
    LOST = "lost"
    """Nothing within the limit."""


@dataclass(frozen=True)
class Call:
    """One call. Times are monotonic seconds; `detail` is what the error said."""

    token: str
    server: str
    sent: float
    ended: float
    outcome: Outcome
    detail: str = ""


def outcome_of_error(message: str, data: Any) -> Outcome:
    """What a JSON-RPC error says about the call."""
    found = data if isinstance(data, dict) else {}
    if found.get("outcome") == "unknown":
        return Outcome.UNKNOWN
    if " timed out after " in message:
        return Outcome.TIMED_OUT
    if found.get("reason") in ("server_unavailable", "session_not_found", "session_limit"):
        return Outcome.REFUSED
    return Outcome.REFUSED if message.endswith("is not connected") else Outcome.UNCLEAR


@dataclass
class Judgement:
    """Counts over all calls, and a sentence for each that went wrong."""

    calls: int = 0
    wrong: int = 0
    lost: int = 0
    longest: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    """How often each text came, cut, by server."""
    failed: list[Call] = field(default_factory=list)
    """Every call that was not answered."""
    complaints: list[str] = field(default_factory=list)

    def say(self, call: Call, text: str) -> None:
        """Note a complaint about a call."""
        took = f"sent {call.sent:.2f}, took {call.ended - call.sent:.2f} s"
        self.complaints.append(f"{call.server} {call.token} ({call.outcome}, {took}): {text} {call.detail}")


def judge(calls: Iterable[Call], journal: Iterable[str], hung: Sequence[Span] = ()) -> Judgement:
    """Hold the calls against the journal of all executions.

    `hung`: when a server's relay was stopped on purpose. Nobody could answer then: a call may wait so much
    longer.
    """
    executed = Counter(journal)
    found = Judgement()
    known = set()
    for call in calls:
        known.add(call.token)
        found.calls += 1
        found.outcomes[call.outcome.value] += 1
        if call.outcome is not Outcome.ANSWERED:
            found.failed.append(call)
            found.errors[f"{call.server}: {call.outcome}: {call.detail[:MAX_DETAIL]}"] += 1
        found.longest = max(found.longest, call.ended - call.sent)
        if call.outcome is Outcome.LOST or _waited(call, hung) > LIMIT_SECONDS:
            found.lost += 1
            found.say(call, "no answer within the limit.")
        elif complaint := _wrong(call, executed[call.token]):
            found.wrong += 1
            found.say(call, complaint)
    for token in executed.keys() - known:
        found.wrong += 1
        found.complaints.append(f"{token}: executed, but nobody called")
    return found


def _waited(call: Call, hung: Sequence[Span]) -> float:
    """Seconds that a call waited for somebody who could have answered."""
    shared = (
        min(span.end, call.ended) - max(span.start, call.sent)
        for span in hung
        if span.server in ("", call.server)
    )
    return call.ended - call.sent - sum(max(0.0, seconds) for seconds in shared)


def _wrong(call: Call, times: int) -> str:
    """What is wrong about a call that was executed so often; empty: nothing."""
    if times > 1:
        return f"executed {times} times."
    if call.outcome is Outcome.WRONG:
        return "another answer than its own."
    if call.outcome is Outcome.UNCLEAR:
        return "the error does not say whether it was executed."
    if call.outcome is Outcome.ANSWERED and not times:
        return "answered, but never executed."
    if call.outcome is Outcome.REFUSED and times:
        return "refused, but executed."
    return ""
