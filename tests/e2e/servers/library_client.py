"""Calls one tool through the official client library and prints one JSON line.

    library_client.py URL --token-file PATH [--call TOOL --arguments JSON]

Needs `mcp` 2.x, which prefers the revision without sessions (2026-07-28).
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client


async def run(options: argparse.Namespace, token: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    if options.host:
        headers["Host"] = options.host
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(options.url, http_client=http)) as client,
    ):
        listed = await client.list_tools()
        answer: dict[str, Any] = {"tools": [tool.name for tool in listed.tools]}
        answer["revision"] = client.protocol_version
        if options.call:
            result = await client.call_tool(options.call, json.loads(options.arguments))
            answer["isError"] = bool(result.is_error)
            answer["text"] = [getattr(part, "text", None) for part in result.content]
        return answer


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("url")
    options.add_argument("--token-file", required=True)
    options.add_argument("--call", default="")
    options.add_argument("--arguments", default="{}")
    options.add_argument("--host", default="", help="Host header, where the URL is not the server's own name")
    arguments = options.parse_args()
    token = Path(arguments.token_file).read_text().strip()
    sys.stdout.write(json.dumps(asyncio.run(run(arguments, token))) + "\n")


if __name__ == "__main__":
    main()
