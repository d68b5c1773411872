"""Runs in a pod: calls one MCP endpoint through its Service and prints figures as one JSON line.

    loadgen.py URL [--token-file FILE] [--calls N] [--seconds S]

Lies with the modules it imports in a mounted ConfigMap; beside them it needs the standard library alone.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path
from urllib.parse import urlsplit

from echo import echoes
from measure import latency, throughput

from clusterkit.leanmcp import Endpoint, McpClient

TEXT = "x" * 64
CLIENTS = (1, 16, 64)


async def run(options: argparse.Namespace, token: str | None) -> dict[str, float]:
    url = urlsplit(options.url)
    endpoint = Endpoint(url.hostname or "", url.port or 80, url.netloc, url.path)
    figures: dict[str, float] = {}
    for count in CLIENTS:
        clients = [McpClient(endpoint, token, keep_alive=True, limit=None) for _ in range(count)]
        await asyncio.gather(*(client.connect() for client in clients))
        calls = await echoes(clients, TEXT)
        if count == 1:
            figures |= await latency(calls[0], options.calls)
        await throughput(calls, 0.3)  # warm up
        figures[f"c{count}"] = await throughput(calls, options.seconds)
        for call in calls:
            call.close()
        await asyncio.gather(*(client.close() for client in clients))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url")
    parser.add_argument("--token-file", type=Path)
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    token = options.token_file.read_text().strip() if options.token_file else None
    sys.stdout.write(json.dumps(asyncio.run(run(options, token))) + "\n")


if __name__ == "__main__":
    main()
