"""The status document: plain dictionaries in the shape of the contract's `RelayStatus`, always bounded."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mcp_sidecar.core import jsontext
from mcp_sidecar.core.machine import State

MAX_TOOLS = 128
MAX_DESCRIPTION = 256
MAX_NAME = 256
MAX_MESSAGE = 1024
MAX_STDERR_TAIL = 2048
MAX_PROGRESS = 256
MAX_CAPABILITIES_BYTES = 8192
MAX_DEPTH = 16
"""Of containers in what a server declared: readers of the status have limits of their own."""
_INFO_FIELDS = ("name", "title", "version", "websiteUrl", "description")

PROCESS_REASONS = ("Exited", "Signaled", "OutOfMemory", "MemoryLimitExceeded")
_START_REASONS = ("CommandNotFound", "PermissionDenied", "StartFailed")


@dataclass(frozen=True, slots=True)
class Process:
    """The server process as the launcher introduced it."""

    incarnation: str
    pid: int
    start_time: float


@dataclass(frozen=True, slots=True)
class Problem:
    """Why the session cannot be used; phase and reason are constants of the contract."""

    phase: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Tools:
    """The server's tools as the status shows them."""

    count: int
    digest: str
    shown: tuple[Mapping[str, str], ...]


@dataclass(frozen=True, slots=True)
class Exit:
    """How the process ended."""

    exit_code: int
    signal: str | None
    reason: str
    message: str
    time: float
    stderr_tail: str


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys with which clients' signed tokens are verified."""

    digest: str | None = None
    unknown: int = 0
    usable: int = 0
    source: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a status document is made of, but for instance, revision and counters."""

    state: State = State.CONNECTING
    since: float = 0.0
    process: Process | None = None
    exit: Exit | None = None
    error: Problem | None = None
    session: Mapping[str, Any] | None = field(default=None)
    """protocolVersion, serverInfo, capabilities, since, adopted."""
    tools: Tools | None = None
    process_failure: Exit | None = None
    """How the last process of a client failed."""
    keys: Keys | None = None
    """None: clients need no signed tokens."""
    progress: str = ""
    """While connecting: the last line of the server's stderr, as the launcher masked it."""


def render(
    facts: Facts,
    instance: str,
    revision: int,
    handshakes: int,
    clients: int,
    processes: int | None = None,
) -> bytes:
    """The document as JSON in valid UTF-8, whatever the server wrote."""
    document = {
        "instance": instance,
        "revision": revision,
        "state": facts.state.value,
        "since": facts.since,
        "process": facts.process and _process(facts.process),
        "exit": facts.exit and _exit(facts.exit),
        "error": facts.error and _error(facts.error),
        "session": facts.session,
        "progress": cut(facts.progress, MAX_PROGRESS),
        "handshakes": handshakes,
        "clients": clients,
        "processes": processes,
        "processFailure": facts.process_failure and _exit(facts.process_failure),
        "toolCount": facts.tools and facts.tools.count,
        "toolsDigest": facts.tools and facts.tools.digest,
        "tools": facts.tools.shown if facts.tools else (),
        "keys": facts.keys and asdict(facts.keys),
    }
    return jsontext.dumps(clean(document))


def _process(process: Process) -> dict[str, Any]:
    return {"incarnation": process.incarnation, "pid": process.pid, "startTime": process.start_time}


def _exit(ended: Exit) -> dict[str, Any]:
    return {
        "exitCode": ended.exit_code,
        "signal": ended.signal,
        "reason": ended.reason,
        "message": ended.message[:MAX_MESSAGE],
        "time": ended.time,
        "stderrTail": ended.stderr_tail[-MAX_STDERR_TAIL:],
    }


def _error(problem: Problem) -> dict[str, Any]:
    return {"phase": problem.phase, "reason": problem.reason, "message": problem.message[:MAX_MESSAGE]}


def session(answer: Mapping[str, Any], since: float, *, adopted: bool) -> dict[str, Any]:
    """The session part from what the server answered to `initialize`."""
    info, capabilities = answer.get("serverInfo"), answer.get("capabilities")
    named = info if isinstance(info, Mapping) else {}
    return {
        "protocolVersion": answer["protocolVersion"],
        "serverInfo": {
            k: cut(named[k], MAX_DESCRIPTION) for k in _INFO_FIELDS if isinstance(named.get(k), str)
        },
        "capabilities": _bounded(capabilities if isinstance(capabilities, Mapping) else {}),
        "since": since,
        "adopted": adopted,
    }


def nameless(session: Mapping[str, Any]) -> dict[str, Any]:
    """The session part without any text of the server."""
    return {**session, "serverInfo": {}, "capabilities": {}}


def _bounded(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    shallow = {name: _shallow(value, MAX_DEPTH - 1) for name, value in capabilities.items()}
    if len(jsontext.dumps(shallow)) <= MAX_CAPABILITIES_BYTES:
        return shallow
    return {cut(name, MAX_NAME): {} for name in list(capabilities)[:64]}


def _shallow(value: Any, depth: int) -> Any:
    """The value with empty containers in place of those that lie deeper than `depth`."""
    if isinstance(value, Mapping):
        return {key: _shallow(item, depth - 1) for key, item in value.items()} if depth else {}
    if isinstance(value, list | tuple):
        return [_shallow(item, depth - 1) for item in value] if depth else []
    return value


class ToolList:
    """A server's tools as their list is read page by page: count, digest, and the first few to show.

    What has no name is only counted. Nothing of a page is kept but what is shown.
    """

    def __init__(self) -> None:
        self.count = 0
        self.size = 0
        """Bytes of what was read."""
        self._digest = hashlib.sha256()
        self._shown: list[dict[str, str]] = []

    def add(self, page: Sequence[Any]) -> None:
        """Take one page as it came."""
        self.count += len(page)
        for entry in page:
            written = _written(entry)
            self.size += len(written)
            self._digest.update(written + b"\n")
            named = isinstance(entry, Mapping) and isinstance(entry.get("name"), str)
            if named and len(self._shown) < MAX_TOOLS:
                self._shown.append(_tool(entry))

    def tools(self) -> Tools:
        """What was read so far."""
        return Tools(self.count, f"sha256:{self._digest.hexdigest()}", tuple(self._shown))


def tools(entries: Sequence[Any]) -> Tools:
    """The same for a list of one page."""
    found = ToolList()
    found.add(entries)
    return found.tools()


def _written(entry: Any) -> bytes:
    try:
        return jsontext.dumps(entry)
    except RecursionError:  # nested as deep as can be read, and so too deep to be written
        return b"?"


def _tool(entry: Mapping[str, Any]) -> dict[str, str]:
    tool = {"name": cut(entry["name"], MAX_NAME)}
    for key in ("title", "description"):
        if isinstance(entry.get(key), str):
            tool[key] = cut(entry[key], MAX_DESCRIPTION)
    return tool


def cut(text: str, limit: int) -> str:
    """At most `limit` characters, an ellipsis for what is missing."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def clean(value: Any) -> Any:
    """The same JSON value without what readers refuse: lone surrogates, NaN and infinities."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, Mapping):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


def process_problem(ended: Exit, initialised: bool) -> Problem:
    """The error of a process that ended."""
    phase = "Process" if ended.reason in PROCESS_REASONS else "ProcessStart"
    tail = "" if initialised or phase == "ProcessStart" else " before it answered initialize"
    return Problem(phase, ended.reason, how_ended(ended) + tail)


def end_label(ended: Exit) -> str:
    """The reason of an end as a label of a metric, of which there are few whatever is told."""
    return ended.reason if ended.reason in PROCESS_REASONS + _START_REASONS else "other"


def how_ended(ended: Exit) -> str:
    """In words: how the process ended."""
    if ended.reason == "Signaled":
        return f"ended by signal {ended.signal or 'unknown'} (exit code {ended.exit_code})"
    if ended.reason == "Exited":
        return f"exited with code {ended.exit_code}"
    if ended.reason == "OutOfMemory":
        return "was killed because the container's memory limit was reached"
    if ended.reason == "MemoryLimitExceeded":
        return f"{ended.message.removeprefix('the process ')} (spec.session.processMemoryLimit)"
    return f"could not be started: {ended.message or ended.reason}"
