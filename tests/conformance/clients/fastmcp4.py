"""FastMCP's client against an endpoint: `fastmcp4.py URL`; prints what it saw as one JSON document."""

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client  # type: ignore[import-not-found]  # of another environment


async def sample(messages: Any, params: Any, context: Any) -> str:
    return f"You said {messages[0].content.text}"


async def elicit(message: str, response_type: Any, params: Any, context: Any) -> dict[str, str]:
    return {"username": message, "email": "a@b.example"}


async def main(url: str) -> None:
    logged: list[Any] = []
    steps: list[float] = []

    async def log(message: Any) -> None:
        logged.append(message.data)

    async def step(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async with Client(url, sampling_handler=sample, elicitation_handler=elicit, log_handler=log) as client:

        async def call(tool: str, **arguments: Any) -> str:
            return str((await client.call_tool(tool, arguments, progress_handler=step)).content[0].text)

        seen = {
            "tools": len(await client.list_tools()),
            "text": await call("test_simple_text"),
            "sampled": await call("test_sampling", prompt="hello"),
            "elicited": await call("test_elicitation", message="who"),
            "resources": len(await client.list_resources()),
        }
        await call("test_tool_with_logging")
        await call("test_tool_with_progress")
        await call("test_simple_text")  # what came before it was handed out by now
    print(json.dumps({**seen, "logged": logged, "steps": steps}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
