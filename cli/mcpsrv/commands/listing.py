"""`list`: all MCPServers of a namespace, or of all."""

from typing import Any

from mcpsrv.cluster.access import Where
from mcpsrv.cluster.kinds import SERVERS
from mcpsrv.cluster.kube import connected
from mcpsrv.core import state
from mcpsrv.terminal import Terminal, phase_colour

Json = dict[str, Any]


async def run(terminal: Terminal, where: Where, everywhere: bool) -> None:
    """Prints the list."""
    async with connected(where) as kube:
        servers = await kube.list(SERVERS, everywhere=everywhere)
        namespace = kube.namespace
    place = "the cluster" if everywhere else f"namespace {namespace}"
    terminal.result([_summary(one) for one in servers], lambda: _print(terminal, servers, everywhere, place))


def _summary(server: Json) -> Json:
    """What a script wants to know of one MCPServer."""
    now, status = state.situation(server), state.status(server)
    return {
        "namespace": server["metadata"]["namespace"],
        "name": server["metadata"]["name"],
        "ready": state.is_ready(server),
        "phase": now.phase,
        "reason": now.reason,
        "message": now.message,
        "tools": status.get("toolCount"),
        "restarts": (status.get("recovery") or {}).get("restarts", 0),
        "url": (status.get("address") or {}).get("url"),
    }


def _print(terminal: Terminal, servers: list[Json], everywhere: bool, place: str) -> None:
    if not servers:
        terminal.note(f"no MCPServers in {place}")
        return
    rows = []
    for one in map(_summary, servers):
        tools = "" if one["tools"] is None else str(one["tools"])
        why = "" if one["ready"] else f"{one['reason']}: {one['message']}".rstrip(": ")
        ready = "yes" if one["ready"] else "no"
        row = (one["name"], ready, one["phase"], tools, str(one["restarts"]), one["url"] or why[:100])
        rows.append((one["namespace"], *row) if everywhere else row)
    heads = ("NAME", "READY", "PHASE", "TOOLS", "RESTARTS", "URL, OR WHY NOT")
    first = 1 if everywhere else 0
    terminal.table(
        *(("NAMESPACE", *heads) if everywhere else heads),
        rows=rows,
        styles={first + 1: phase_colour, first + 2: phase_colour},
    )
