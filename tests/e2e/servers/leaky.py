"""A stdio MCP server that tells its secrets wherever it can: name, tools, noise, errors, stderr.

The secrets are the variables whose names begin with CANARY. With an argument it fails at that stage.
"""

import base64
import json
import os
import sys
from typing import Any

Json = dict[str, Any]
SECRETS = [value for name, value in sorted(os.environ.items()) if name.startswith("CANARY")]
TOLD = " ".join([*SECRETS, *(base64.b64encode(value.encode()).decode() for value in SECRETS)])
FAILS = sys.argv[1] if len(sys.argv) > 1 else ""


def answer(method: str) -> Json:
    if method == FAILS:
        return {"error": {"code": -32000, "message": f"failed with {TOLD}", "data": TOLD}}
    if method == "initialize":
        info = {"name": f"leaky {TOLD}", "version": TOLD[:200], "title": TOLD}
        return {
            "result": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": True}, "experimental": {f"x/{TOLD[:100]}": {}}},
                "serverInfo": info,
                "instructions": TOLD,
            }
        }
    if method == "tools/list":
        tools = [
            {"name": f"tool-{n}-{secret[:40]}", "description": TOLD, "inputSchema": {"type": "object"}}
            for n, secret in enumerate(SECRETS)
        ]
        return {"result": {"tools": [*tools, {"name": "die", "inputSchema": {"type": "object"}}]}}
    return {"result": {}}


def main() -> None:
    print(f"no JSON but {TOLD}", flush=True)
    print(f"starting with {TOLD}", file=sys.stderr, flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "tools/call":
            print("dying with", *TOLD.split(), sep="\n", file=sys.stderr, flush=True)
            os._exit(3)
        if "id" in message:
            told = {"jsonrpc": "2.0", "id": message["id"], **answer(str(message.get("method")))}
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
