"""`why`: what happened to an MCPServer, and what to do."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from mcp_operator.core import naming
from mcpsrv.cluster.access import Where
from mcpsrv.cluster.kinds import EVENTS, SERVERS
from mcpsrv.cluster.kube import Kube, connected
from mcpsrv.commands.logs import pods_of
from mcpsrv.core import story, when
from mcpsrv.core.errors import ExitCode, NotFoundError, UsageError
from mcpsrv.core.story import Facts, Moment, Story
from mcpsrv.terminal import Terminal

Json = dict[str, Any]
_TAIL_LINES: Final = 40


async def run(terminal: Terminal, where: Where, name: str) -> ExitCode:
    """Prints the story. OK when the MCPServer is Ready, else FAILED."""
    async with connected(where) as kube:
        told = story.tell(await _facts(kube, name))
    terminal.result(asdict(told), lambda: _print(terminal, told))
    return ExitCode.OK if told.ready else ExitCode.FAILED


async def _facts(kube: Kube, name: str) -> Facts:
    server = await kube.get(SERVERS, name)
    pods = await pods_of(kube, name)
    events = await _events(kube, [server, *pods])
    output = await _output(kube, pods[-1]) if pods else ""
    return Facts(server, tuple(pods), tuple(events), output)


async def _events(kube: Kube, objects: list[Json]) -> list[Json]:
    found: list[Json] = []
    for one in objects:
        uid = one["metadata"]["uid"]
        found += await kube.list(EVENTS, query=[("fieldSelector", f"regarding.uid={uid}")])
    return found


async def _output(kube: Kube, pod: Json) -> str:
    """The last lines of the server's log; none while the container has not started."""
    query = [("container", naming.SERVER_CONTAINER), ("tailLines", str(_TAIL_LINES))]
    try:
        lines = [line async for line in kube.log(pod["metadata"]["name"], query)]
    except (NotFoundError, UsageError):
        return ""
    return b"".join(lines).decode(errors="replace")


def _moment(moment: Moment, now: datetime) -> str:
    times = f" ({moment.times} times)" if moment.times > 1 else ""
    age = when.ago(moment.time, now)
    return f"  {age:>10}  {moment.reason:<20} {moment.message}{times}  [{moment.about}]"


def _print(terminal: Terminal, told: Story) -> None:
    terminal.line(f"{told.namespace}/{told.name}: {told.headline}", style="green" if told.ready else "red")
    terminal.line()
    terminal.line("What happened", style="bold")
    if told.omitted:
        terminal.line(f"  … {told.omitted} earlier", style="dim")
    now = datetime.now(UTC)
    for moment in told.moments:
        style = "red" if moment.bad and not told.ready else ""
        terminal.line(_moment(moment, now), style=style)
    if told.output and not told.ready:
        terminal.line()
        terminal.line("Last lines of the server", style="bold")
        for line in told.output:
            terminal.line(f"  {line}")
    if told.next_attempt and not told.ready:
        terminal.line()
        terminal.line(f"Next attempt: {told.next_attempt} ({when.ahead(told.next_attempt, now)})")
    if told.advice:
        terminal.line()
        terminal.line("What to do", style="bold")
        for number, advice in enumerate(told.advice, 1):
            terminal.line(f"  {number}. {advice}")
