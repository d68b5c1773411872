"""A remote MCP server on the official Python SDK, of whichever generation its environment has.

`remote.py --port PORT [--host ADDRESS] [--sse] [--token TOKEN]`; with a token every request must bear it.
"""

import argparse
import asyncio
import importlib
import os
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn

App = Callable[[Any, Any, Any], Awaitable[None]]


async def echo(text: str) -> str:
    """Say it again."""
    return text


async def whoami() -> str:
    """Which process answers."""
    return f"{os.environ.get('HOSTNAME', 'here')}/{os.getpid()}"


async def slow(seconds: float) -> str:
    """Answer after a while."""
    await asyncio.sleep(seconds)
    return "done"


def application(sse: bool, host: str) -> App:
    """`FastMCP` of mcp 1.x, `MCPServer` of mcp 2.x; bound to all addresses neither checks the Host header."""
    try:
        server = importlib.import_module("mcp.server").MCPServer("remote")
        bound = {"host": host}
    except AttributeError:
        server = importlib.import_module("mcp.server.fastmcp").FastMCP("remote", host=host)
        bound = {}
    for tool in (echo, whoami, slow):
        server.add_tool(tool)
    found: App = (server.sse_app if sse else server.streamable_http_app)(**bound)
    return found


def guarded(inner: App, token: str) -> App:
    """Refuses who does not bear the token."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        allowed = (
            scope["type"] != "http"
            or dict(scope["headers"]).get(b"authorization") == f"Bearer {token}".encode()
        )
        if allowed:
            await inner(scope, receive, send)
            return
        await send(
            {"type": "http.response.start", "status": 401, "headers": [(b"content-type", b"text/plain")]}
        )
        await send({"type": "http.response.body", "body": b"who are you"})

    return app


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--sse", action="store_true")
    parser.add_argument("--token", default="")
    options = parser.parse_args()
    app = application(options.sse, options.host)
    uvicorn.run(
        guarded(app, options.token) if options.token else app,
        host=options.host, port=options.port, log_level="warning", timeout_graceful_shutdown=1,
    )  # fmt: skip


if __name__ == "__main__":
    main()
