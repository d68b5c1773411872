"""A stdio MCP server on the official Python SDK, of whichever generation its environment has.

The tools are those of raw.py with the same names and arguments that the fault suite needs.
"""

import asyncio
import hashlib
import importlib
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

STARTED = time.time()


def make() -> Any:
    """A server object: `FastMCP` of mcp 1.x, `MCPServer` of mcp 2.x."""
    try:
        return importlib.import_module("mcp.server").MCPServer("sdk")
    except AttributeError:
        return importlib.import_module("mcp.server.fastmcp").FastMCP("sdk")


async def echo(text: str) -> str:
    """Say it again."""
    return text


async def record(token: str, seconds: float = 0) -> str:
    """Append the token to the file `$JOURNAL`, and answer with it after a while."""
    with Path(os.environ["JOURNAL"]).open("ab", buffering=0) as file:  # noqa: ASYNC230 - one short line
        file.write(token.encode() + b"\n")
    if seconds:
        await asyncio.sleep(seconds)
    return token


async def stats() -> str:
    """Which process this is."""
    return json.dumps({"pid": os.getpid(), "started": STARTED})


async def secret(name: str) -> str:
    """SHA-256 of a variable's value."""
    return hashlib.sha256(os.environ[name].encode()).hexdigest()


async def die(code: int = 1, signal_name: str = "") -> str:
    """End the process in the middle of the call."""
    if signal_name:
        os.kill(os.getpid(), signal.Signals[signal_name])
    os._exit(code)


async def allocate(mib: int, seconds: float) -> str:
    """Take memory little by little, and keep it."""

    async def take() -> None:
        for _ in range(mib):
            HOARD.append(os.urandom(1 << 20))
            await asyncio.sleep(seconds / mib)

    TASKS.append(asyncio.create_task(take()))
    return "allocating"


HOARD: list[bytes] = []
TASKS: list[asyncio.Task[None]] = []
TOOLS = (echo, record, stats, secret, die, allocate)


def main() -> None:
    server = make()
    for tool in TOOLS:
        server.tool()(tool)
    server.run()


if __name__ == "__main__":
    main()
