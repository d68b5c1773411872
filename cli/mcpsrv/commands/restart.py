"""`restart`: a new pod, and a fresh budget of retries."""

from datetime import UTC, datetime
from typing import Any

from mcp_operator.core.api import RESTART_ANNOTATION
from mcpsrv.cluster.access import Where
from mcpsrv.cluster.kinds import SERVERS
from mcpsrv.cluster.kube import connected
from mcpsrv.commands import waiting
from mcpsrv.core import state
from mcpsrv.core.errors import CliError, ExitCode
from mcpsrv.terminal import Terminal

Json = dict[str, Any]


async def run(terminal: Terminal, where: Where, name: str, wait: bool, seconds: float) -> ExitCode:
    """Annotates the MCPServer and waits until the next pod is Ready."""
    async with connected(where) as kube:
        before = await kube.get(SERVERS, name)
        if before["spec"].get("suspend"):
            raise CliError(f"{name} is suspended: set spec.suspend to false to start it")
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        await kube.merge(SERVERS, name, {"metadata": {"annotations": {RESTART_ANNOTATION: now}}})
        if not wait:
            terminal.result({"name": name, "restartedAt": now}, lambda: terminal.line(f"{name} is restarted"))
            return ExitCode.OK
        old = state.epoch(before)

        def ends(server: Json) -> bool | None:
            return waiting.ready(server) if state.epoch(server) > old else None

        waited = await waiting.until(kube, name, ends, seconds, terminal)
    now_is = state.situation(waited.server)
    report = {"name": name, "ready": waited.done, "seconds": round(waited.seconds, 1), "phase": now_is.phase}
    if not waited.done:
        failure = f"{name} is not Ready after {waited.seconds:.0f} s: {now_is.reason}: {now_is.message}"
        if terminal.is_json:
            terminal.json({**report, "reason": now_is.reason, "message": now_is.message})
        raise CliError(f"{failure}; see: mcpsrv why {name}")
    terminal.result(report, lambda: terminal.line(f"{name} is Ready again after {waited.seconds:.1f} s"))
    return ExitCode.OK
