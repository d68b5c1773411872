"""`tools` and `call`: what a server offers, and one call of it."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpsrv import session
from mcpsrv.cluster.access import Where
from mcpsrv.cluster.kube import connected
from mcpsrv.core import arguments, plain, toolview
from mcpsrv.core.errors import ExitCode, NotFoundError, UsageError
from mcpsrv.terminal import Terminal

Json = dict[str, Any]


@dataclass(frozen=True)
class Wanted:
    """A call as it was written: words `key=value`, and a JSON object below them ("-": from stdin)."""

    tool: str
    words: Sequence[str] = ()
    document: str = ""


async def run_tools(terminal: Terminal, where: Where, name: str, token: str) -> None:
    """Prints the tools."""
    async with connected(where) as kube:
        server = await session.current(kube, name)
        async with session.opened(kube, server, token) as mcp:
            found = await mcp.tools()
    terminal.result(found, lambda: print_tools(terminal, found))


async def run_call(terminal: Terminal, where: Where, name: str, wanted: Wanted, token: str) -> ExitCode:
    """Calls and prints the result. FAILED when the tool says that it failed."""
    base = read_object(wanted.document)
    async with connected(where) as kube:
        server = await session.current(kube, name)
        async with session.opened(kube, server, token) as mcp:
            result = await call(terminal, mcp, wanted, base)
    terminal.result(result, lambda: print_result(terminal, result))
    return ExitCode.FAILED if result.get("isError") else ExitCode.OK


async def call(terminal: Terminal, mcp: session.McpSession, wanted: Wanted, base: Json) -> Json:
    """The result of a call whose words are typed by the tool's schema.

    Raises:
        NotFoundError: the server has no such tool.
        UsageError: the arguments do not fit the schema.

    """
    tools = {tool["name"]: tool for tool in await mcp.tools()}
    if wanted.tool not in tools:
        close = toolview.close(wanted.tool, tools, "`mcpsrv tools` lists them")
        raise NotFoundError(f"there is no tool {wanted.tool}: {close}")
    made = arguments.parse(wanted.words, tools[wanted.tool].get("inputSchema") or {}, base)
    with terminal.waiting(f"{wanted.tool}: waiting for the answer") as show:

        async def progress(done: float, total: float | None, message: str | None) -> None:
            show(toolview.progress(wanted.tool, done, total, message))

        return await mcp.call(wanted.tool, made, progress)


def read_object(document: str) -> Json:
    """The JSON object of `--json`: text, `-` for stdin, or `@FILE`. Raises UsageError if it is none."""
    if not document:
        return {}
    try:
        text = sys.stdin.read() if document == "-" else document
        text = Path(document[1:]).read_text(encoding="utf-8") if document.startswith("@") else text
        found = json.loads(text)
    except (OSError, ValueError) as error:
        raise UsageError(f"--json: {error}") from error
    if not isinstance(found, dict):
        raise UsageError('--json must be an object, like {"timezone": "Europe/Berlin"}')
    return found


def print_tools(terminal: Terminal, tools: list[Json]) -> None:
    """A block for each tool: name, first line of its description, arguments."""
    for tool in tools:
        terminal.line(plain.one_line(tool["name"]), style="bold")
        if text := toolview.summary(tool):
            terminal.line(f"  {text}")
        for argument in toolview.arguments(tool):
            terminal.line(f"  {argument}", style="dim")
    if not tools:
        terminal.note("the server has no tools")


def print_result(terminal: Terminal, result: Json) -> None:
    """The contents for people, those of a failed call in red."""
    style = "red" if result.get("isError") else ""
    for text in toolview.contents(result):
        terminal.line(text, style=style)
