"""The mcp library, major 1, against an endpoint: `mcp1.py URL`; prints what it saw as one JSON document."""

import asyncio
import json
import sys
from typing import Any

from mcp import ClientSession, types
from mcp.client.streamable_http import streamable_http_client


async def sample(context: Any, params: Any) -> Any:
    answer = types.TextContent(type="text", text=f"You said {params.messages[0].content.text}")
    return types.CreateMessageResult(role="assistant", content=answer, model="none")


async def elicit(context: Any, params: Any) -> Any:
    return types.ElicitResult(action="accept", content={"username": params.message, "email": "a@b.example"})


async def use(session: Any, logged: list[Any]) -> dict[str, Any]:
    steps: list[float] = []

    async def step(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async def call(tool: str, **arguments: Any) -> str:
        return str((await session.call_tool(tool, arguments, progress_callback=step)).content[0].text)

    seen = {
        "tools": len((await session.list_tools()).tools),
        "text": await call("test_simple_text"),
        "sampled": await call("test_sampling", prompt="hello"),
        "elicited": await call("test_elicitation", message="who"),
        "resources": len((await session.list_resources()).resources),
    }
    await call("test_tool_with_logging")
    await call("test_tool_with_progress")
    await call("test_simple_text")  # what came before it was handed out by now
    return {**seen, "logged": logged, "steps": steps}


async def main(url: str) -> None:
    logged: list[Any] = []

    async def log(params: Any) -> None:
        logged.append(params.data)

    callbacks: dict[str, Any] = {
        "sampling_callback": sample, "elicitation_callback": elicit, "logging_callback": log,
    }  # fmt: skip
    async with (
        streamable_http_client(url) as streams,
        ClientSession(streams[0], streams[1], **callbacks) as session,
    ):
        await session.initialize()
        print(json.dumps(await use(session, logged)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
