"""`why`: what happened to an MCPServer, in order, and what to do. One screen, from plain objects."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from mcp_operator.core.api import ConditionType, Phase, Reason
from mcpsrv.core import cures, state

Json = dict[str, Any]
MAX_MOMENTS: Final = 18
MAX_OUTPUT_LINES: Final = 8
_GOOD: Final = frozenset(
    {ConditionType.ACCEPTED, ConditionType.AVAILABLE, ConditionType.VERIFIED, ConditionType.READY}
)
# In place of a time.
_NOW: Final = "now"
_QUIET_EVENTS: Final = frozenset({"Scheduled", "Pulled", "Killing", "SuccessfulAttachVolume"})


@dataclass(frozen=True)
class Facts:
    """What was read: the MCPServer, its pods, Events about it and them, and the last lines of its log."""

    server: Json
    pods: tuple[Json, ...] = ()
    events: tuple[Json, ...] = ()
    output: str = ""


@dataclass(frozen=True)
class Moment:
    """Something that happened. `time` is RFC 3339, or "now" for what holds without one."""

    time: str
    about: str
    reason: str
    message: str
    bad: bool = False
    times: int = 1


@dataclass(frozen=True)
class Story:
    """The whole screen. `output` are the server's last lines; `advice` is empty when all is well."""

    name: str
    namespace: str
    ready: bool
    headline: str
    moments: tuple[Moment, ...]
    omitted: int
    error: Json
    output: tuple[str, ...]
    advice: tuple[str, ...]
    next_attempt: str


def tell(facts: Facts) -> Story:
    """The story of these facts."""
    server = facts.server
    found = [*_server_moments(server), *_pod_moments(facts.pods), *_events(facts.events)]
    moments = _merged(sorted(found, key=lambda one: _seconds(one.time)))
    error = state.status(server).get("error") or {}
    output = _output(facts, error)
    return Story(
        name=server["metadata"]["name"],
        namespace=server["metadata"].get("namespace", ""),
        ready=state.is_ready(server),
        headline=_headline(server),
        moments=tuple(moments[-MAX_MOMENTS:]),
        omitted=max(0, len(moments) - MAX_MOMENTS),
        error=error,
        output=output,
        advice=_advice(server, error, output),
        next_attempt=_next_attempt(server),
    )


def _headline(server: Json) -> str:
    now = state.situation(server)
    if state.is_ready(server):
        status = state.status(server)
        count = status.get("toolCount")
        tools = "" if count is None else f", {count} tools"
        restarts = (status.get("recovery") or {}).get("restarts", 0)
        return f"Ready{tools}, {restarts} restarts so far" if restarts else f"Ready{tools}"
    return f"not Ready, phase {now.phase}: {now.reason}: {now.message}".rstrip(": ")


def _server_moments(server: Json) -> Iterator[Moment]:
    metadata = server["metadata"]
    yield Moment(metadata["creationTimestamp"], "resource", "Created", "the MCPServer was made")
    if deleted := metadata.get("deletionTimestamp"):
        yield Moment(deleted, "resource", "Terminating", "its deletion was asked for")
    for one in state.status(server).get("conditions") or ():
        # What a condition that is not met says is of now, not of the time when it stopped being met.
        if one.get("status") == state.ANSWERED and one.get("type") in _GOOD:
            message = f"{one['type']} is True since then: {one.get('message', '')}".rstrip(": ")
            yield Moment(str(one.get("lastTransitionTime") or ""), "condition", str(one["reason"]), message)
    if error := state.status(server).get("error"):
        yield Moment(
            str(error.get("time", "")), "error", str(error.get("reason", "")), _error_text(error), bad=True
        )


def _error_text(error: Mapping[str, Any]) -> str:
    code = f" (exit code {error['exitCode']})" if error.get("exitCode") is not None else ""
    return f"{error.get('phase', '')}: {error.get('message', '')}{code}"


def _pod_moments(pods: Iterable[Json]) -> Iterator[Moment]:
    for pod in pods:
        name = pod["metadata"]["name"]
        yield Moment(pod["metadata"]["creationTimestamp"], name, "PodCreated", "the pod was made")
        status = pod.get("status") or {}
        for one in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
            yield from _container_moments(name, one)


def _container_moments(pod: str, one: Json) -> Iterator[Moment]:
    about = f"{pod}/{one['name']}"
    for record in (one.get("lastState") or {}, one.get("state") or {}):
        if running := record.get("running"):
            yield Moment(running["startedAt"], about, "Started", "the container runs since then")
        if ended := record.get("terminated"):
            if ended.get("startedAt"):
                yield Moment(ended["startedAt"], about, "Started", "the container started")
            how = f"signal {ended['signal']}" if ended.get("signal") else f"exit code {ended.get('exitCode')}"
            bad = ended.get("exitCode") != 0 or one["name"] == "server"
            yield Moment(
                ended.get("finishedAt") or "",
                about,
                ended.get("reason") or "Terminated",
                f"ended, {how}",
                bad,
            )
        if waiting := record.get("waiting"):
            # A state of waiting has no time: it holds now, so it comes last.
            yield Moment(
                _NOW, about, waiting.get("reason", "Waiting"), waiting.get("message", "is waiting"), bad=True
            )


def _events(events: Iterable[Json]) -> Iterator[Moment]:
    for one in events:
        reason = str(one.get("reason", ""))
        if reason in _QUIET_EVENTS:
            continue
        regarding = one.get("regarding") or {}
        about = "operator" if regarding.get("kind") == "MCPServer" else str(regarding.get("name", ""))
        times = int((one.get("series") or {}).get("count") or one.get("deprecatedCount") or 1)
        when = (one.get("series") or {}).get("lastObservedTime") or one.get("eventTime")
        when = when or one.get("deprecatedLastTimestamp") or one["metadata"].get("creationTimestamp") or ""
        yield Moment(str(when), about, reason, str(one.get("note", "")), one.get("type") == "Warning", times)


def _merged(moments: Iterable[Moment]) -> list[Moment]:
    """Without what is told twice: a condition and an Event of one reason within the same second."""
    kept: list[Moment] = []
    for one in moments:
        twin = next((n for n, other in enumerate(kept) if _same(one, other)), None)
        if twin is None:
            kept.append(one)
        elif len(one.message) > len(kept[twin].message):
            kept[twin] = one
    return kept


def _same(one: Moment, other: Moment) -> bool:
    if one.reason != other.reason or one.time == _NOW:
        return False
    return one.message == other.message or (_near(one.time, other.time) and one.about != other.about)


def _near(one: str, other: str) -> bool:
    return abs(_seconds(one) - _seconds(other)) < 2


def _seconds(time: str) -> float:
    """Seconds since the epoch; what holds now comes last, what has no time first."""
    if time == _NOW:
        return math.inf
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return 0.0


def _output(facts: Facts, error: Mapping[str, Any]) -> tuple[str, ...]:
    """The last lines that the server wrote: of its log, else what the operator kept of them."""
    text = facts.output.strip() or str(error.get("stderrTail") or "").strip()
    return tuple(text.splitlines()[-MAX_OUTPUT_LINES:])


def _next_attempt(server: Json) -> str:
    return str((state.status(server).get("recovery") or {}).get("nextAttemptTime") or "")


def _advice(server: Json, error: Mapping[str, Any], output: tuple[str, ...]) -> tuple[str, ...]:
    """Cures, most telling first: of what the server wrote, of the error, of the conditions."""
    if state.is_ready(server):
        return ()
    name, pod = server["metadata"]["name"], state.pod_name(server)
    reasons = [str(error.get("reason", "")), state.situation(server).reason]
    if state.phase(server) == Phase.SUSPENDED:
        reasons = [Reason.SUSPENDED]
    failed = bool(error) or state.phase(server) in {Phase.ERROR, Phase.RECREATING}
    clues = cures.for_output("\n".join(output)) if failed else ()
    found = [*clues[:2], *(cures.for_reason(reason, name, pod) for reason in reasons)]
    return tuple(dict.fromkeys(one for one in found if one))
