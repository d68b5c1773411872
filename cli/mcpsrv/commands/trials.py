"""`test`: a transient copy of an MCPServer, tried, reported on, and removed in any case."""

import asyncio
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import yaml

from mcpsrv import session
from mcpsrv.cluster.access import Where
from mcpsrv.cluster.kinds import BY_TITLE, CONFIG_MAPS, SECRETS, SERVERS
from mcpsrv.cluster.kube import Kube, connected
from mcpsrv.commands import tools, waiting
from mcpsrv.commands.logs import pods_of
from mcpsrv.core import state, trial
from mcpsrv.core.errors import CliError, ExitCode, UsageError
from mcpsrv.core.progress import Step
from mcpsrv.core.trial import Copy
from mcpsrv.terminal import Terminal, phase_colour

Json = dict[str, Any]
_TAG_BYTES: Final = 3
_LEFTOVER_AFTER: Final = timedelta(minutes=30)
_REMOVAL_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.25


@dataclass(frozen=True)
class Wanted:
    """What to test: the file ("-": stdin), one MCPServer of it ("": all), and a call."""

    file: str
    only: str = ""
    call: tools.Wanted | None = None
    seconds: float = 180.0
    token: str = ""
    """To send instead of the one that the copy's Secret holds."""


@dataclass
class Report:
    """What one test found. Seconds count from the apply."""

    name: str
    ready: bool = False
    seconds: float = 0.0
    phases: list[Step] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    tools: list[str] | None = None
    call: Json | None = None
    call_seconds: float | None = None
    reason: str = ""
    message: str = ""
    stderr: str = ""

    @property
    def passed(self) -> bool:
        """Ready, and the call, if there was one, did not fail."""
        return self.ready and not self.message and not (self.call or {}).get("isError")


async def run(terminal: Terminal, where: Where, wanted: Wanted) -> ExitCode:
    """Tests one after the other. FAILED if one did not become Ready or its call failed."""
    documents = _documents(wanted.file)
    chosen = [one for one in trial.servers(documents) if wanted.only in {"", one["metadata"]["name"]}]
    if not chosen:
        raise UsageError(f"--name {wanted.only}: the file has no such MCPServer")
    if wanted.call and len(chosen) > 1:
        raise UsageError("--call needs one MCPServer: choose it with --name")
    reports = []
    async with connected(where) as kube:
        await _sweep(kube, terminal)
        for server in chosen:
            report = await _test(kube, terminal, server, documents, wanted)
            reports.append(report)
            if not terminal.is_json:
                _print(terminal, report)
    if terminal.is_json:
        terminal.json([{**asdict(one), "passed": one.passed} for one in reports])
    return ExitCode.OK if all(one.passed for one in reports) else ExitCode.FAILED


def _documents(file: str) -> list[Any]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        loaded = list(yaml.safe_load_all(text))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error
    lists = [one["items"] for one in loaded if isinstance(one, dict) and one.get("kind") == "List"]
    return [*loaded, *(item for items in lists for item in items)]


async def _test(kube: Kube, terminal: Terminal, server: Json, documents: list[Any], wanted: Wanted) -> Report:
    expires = (datetime.now(UTC) + _LEFTOVER_AFTER).isoformat(timespec="seconds")
    tag = secrets.token_hex(_TAG_BYTES)
    copy = trial.duplicate(server, documents, kube.namespace, tag, expires)
    report = Report(copy.original, notes=copy.notes)
    async with _applied(kube, terminal, copy) as name:
        waited = await waiting.until(kube, name, waiting.ready, wanted.seconds, terminal)
        report.ready, report.seconds = waited.done, round(waited.seconds, 2)
        report.phases = list(waited.timeline.steps)
        if waited.done:
            await _use(kube, terminal, waited.server, wanted, report)
        else:
            _fail(report, waited.server, wanted.seconds)
    return report


@asynccontextmanager
async def _applied(kube: Kube, terminal: Terminal, copy: Copy) -> AsyncIterator[str]:
    """The copy exists while the block runs. It is removed also when that is cancelled."""
    name = copy.server["metadata"]["name"]
    try:
        for manifest in copy.objects:
            await kube.create(BY_TITLE[manifest["kind"]], manifest)
        yield name
    finally:
        removal = asyncio.ensure_future(_removed(kube, copy))
        try:
            with terminal.waiting(f"removing {name}"):
                await asyncio.shield(removal)
        except asyncio.CancelledError:
            await removal
            raise


async def _removed(kube: Kube, copy: Copy) -> None:
    """Everything of the copy is gone, its pods too. Raises CliError naming what is left."""
    for manifest in reversed(copy.objects):
        await kube.delete(BY_TITLE[manifest["kind"]], manifest["metadata"]["name"])
    name = copy.server["metadata"]["name"]
    try:
        async with asyncio.timeout(_REMOVAL_SECONDS):
            # Two kinds of objects, and perhaps none: looking is simpler than two watches.
            while await kube.find(SERVERS, name) is not None or await pods_of(kube, name):  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError as error:
        left = f"kubectl get mcpserver,pod -n {kube.namespace}"
        raise CliError(f"{name} is still being removed: {left}") from error


async def _use(kube: Kube, terminal: Terminal, server: Json, wanted: Wanted, report: Report) -> None:
    """Lists the tools and makes the call, as a client would."""
    clock = asyncio.get_running_loop().time
    try:
        async with session.opened(kube, server, wanted.token) as mcp:
            report.tools = [tool["name"] for tool in await mcp.tools()]
            if wanted.call:
                base = tools.read_object(wanted.call.document)
                began = clock()
                report.call = await tools.call(terminal, mcp, wanted.call, base)
                report.call_seconds = round(clock() - began, 3)
    except UsageError:
        raise
    except CliError as error:
        report.reason, report.message = "CallFailed", str(error)


def _fail(report: Report, server: Json, seconds: float) -> None:
    error = state.status(server).get("error") or {}
    now = state.situation(server)
    report.reason = error.get("reason") or now.reason
    report.message = error.get("message") or now.message or f"not Ready within {seconds:.0f} s"
    report.stderr = error.get("stderrTail") or ""


async def _sweep(kube: Kube, terminal: Terminal) -> None:
    """Removes copies that an earlier run could not: those whose time is over."""
    now = datetime.now(UTC)
    for kind in (SERVERS, SECRETS, CONFIG_MAPS):
        for one in await kube.list(kind, query=[("labelSelector", trial.LABEL)]):
            expires = (one["metadata"].get("annotations") or {}).get(trial.EXPIRES, "")
            if trial.is_over(expires, now):
                terminal.note(f"removing {one['metadata']['name']}, which an earlier test left")
                await kube.delete(kind, one["metadata"]["name"])


def _print(terminal: Terminal, report: Report) -> None:
    verdict = "passed" if report.passed else "failed"
    terminal.line(f"{report.name}: {verdict}", style="green" if report.passed else "red")
    rows = [(f"{one.at:7.2f} s", one.phase, f"{one.seconds or 0:.2f} s", one.reason) for one in report.phases]
    terminal.table("AT", "PHASE", "FOR", "REASON", rows=rows, styles={1: phase_colour})
    for note in report.notes:
        terminal.warning(note)
    if report.tools is not None:
        terminal.line(f"{len(report.tools)} tools: {', '.join(report.tools)}")
    if report.call is not None:
        terminal.line(f"the call took {report.call_seconds} s:")
        tools.print_result(terminal, report.call)
    if report.message:
        terminal.line(f"{report.reason}: {report.message}", style="red")
    if report.stderr:
        terminal.line(report.stderr.rstrip("\n"))
