"""`connect`: a local port that leads to a server, and the configuration that a client needs for it."""

import asyncio
import json
from typing import Any

from mcp_relay_api import paths
from mcpsrv import session
from mcpsrv.cluster.access import Where
from mcpsrv.cluster.forward import forwarded
from mcpsrv.cluster.kube import connected
from mcpsrv.core import clientconfig, state
from mcpsrv.core.clientconfig import Client
from mcpsrv.core.errors import ExitCode
from mcpsrv.terminal import Terminal

Json = dict[str, Any]


async def run(terminal: Terminal, where: Where, name: str, client: Client, port: int, token: str) -> ExitCode:
    """Serves until it is interrupted; each connection goes to the pod that is there by then."""
    async with connected(where) as kube:
        server = await session.current(kube, name)
        session.require_ready(server)
        sent = token or await session.token(kube, server)

        async def pod() -> str:
            now = await session.current(kube, name)
            session.require_ready(now)
            return state.pod_name(now)

        async with forwarded(kube, pod, paths.MCP_PORT, port, failed=terminal.warning) as local:
            url = f"http://127.0.0.1:{local}{paths.MCP_PATH}"
            block = clientconfig.block(client, name, url, sent)
            terminal.result({"url": url, "token": sent, "config": block}, lambda: _print(terminal, block))
            if not terminal.is_json:
                terminal.note(f"\n{name} is served at {url} until Ctrl-C")
            await asyncio.Event().wait()
    return ExitCode.OK


def _print(terminal: Terminal, block: Json) -> None:
    terminal.out.file.write(json.dumps(block, indent=2) + "\n")
    terminal.out.file.flush()
