"""A stdio MCP server without sessions (revision 2026-07-28) on the standard library, as strange as asked.

`stateless_server.py [MODE]`: answer (default); refuse (speaks another revision); initialize-params (complains
about the params of `initialize` instead of its name). Its tools do the rest.
"""

import json
import sys
import threading
from typing import Any

Json = dict[str, Any]
PREFIX = "io.modelcontextprotocol/"
OUT, LOCK = sys.stdout.buffer, threading.Lock()
RECEIVED: list[Json] = []
LISTENING: dict[Any, Json] = {}
INFO = {"name": "stateless", "version": "1"}
CAPABILITIES: Json = {
    "tools": {"listChanged": True},
    "prompts": {},
    "resources": {"subscribe": True},
    "logging": {},
    "experimental": {"vendor/x": {}},
}


def write(data: bytes) -> None:
    with LOCK:
        OUT.write(data)
        OUT.flush()


def send(message: Json) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n")


def text(value: Any) -> Json:
    content = [{"type": "text", "text": json.dumps(value)}]
    return {"content": content, "resultType": "complete", "_meta": {PREFIX + "serverInfo": INFO}}


def later(seconds: float, message: Json) -> None:
    threading.Timer(seconds, send, (message,)).start()


def tell(number: Any, method: str, params: Json) -> None:
    send({"method": method, "params": {"_meta": {PREFIX + "subscriptionId": number}, **params}})


def tool_echo(rid: Any, params: Json) -> None:
    send({"id": rid, "result": text(params.get("arguments"))})


def tool_sleep(rid: Any, params: Json) -> None:
    later(params["arguments"]["seconds"], {"id": rid, "result": text("slept")})


def tool_stats(rid: Any, _params: Json) -> None:
    send({"id": rid, "result": text({"received": RECEIVED, "listening": list(LISTENING.values())})})


def tool_log(rid: Any, params: Json) -> None:
    send(
        {"method": "notifications/message", "params": {"level": params["arguments"]["level"], "data": "log"}}
    )
    send({"id": rid, "result": text("logged")})


def tool_progress(rid: Any, params: Json) -> None:
    token = params["_meta"].get("progressToken")
    for step in range(2):
        send({"method": "notifications/progress", "params": {"progressToken": token, "progress": step}})
    send({"id": rid, "result": text(token)})


def tool_change(rid: Any, params: Json) -> None:
    """Tell all who listen that the tools, or a resource, changed."""
    uri = (params.get("arguments") or {}).get("uri")
    for number, asked in list(LISTENING.items()):
        if uri is None and asked.get("toolsListChanged"):
            tell(number, "notifications/tools/list_changed", {})
        if uri in asked.get("resourceSubscriptions", ()):
            tell(number, "notifications/resources/updated", {"uri": uri})
    send({"id": rid, "result": text("changed")})


def tool_hang_up(rid: Any, params: Json) -> None:
    """End all subscriptions, by an answer or by a cancellation."""
    for number in list(LISTENING):
        del LISTENING[number]
        if params["arguments"]["how"] == "cancel":
            send({"method": "notifications/cancelled", "params": {"requestId": number}})
        else:
            meta = {PREFIX + "subscriptionId": number}
            send({"id": number, "result": {"resultType": "complete", "_meta": meta}})
    send({"id": rid, "result": text("hung up")})


def tool_ask(rid: Any, params: Json) -> None:
    """Ask the client as often as asked; then give back all that came with the last request."""
    rounds = params["arguments"].get("rounds", 1)
    state = int(params.get("requestState") or 0)
    if state == rounds:
        send({"id": rid, "result": text({"responses": params.get("inputResponses"), "state": state})})
        return
    questions = params["arguments"].get("questions", {"q": {"method": "roots/list"}})
    wish = {"resultType": "input_required", "inputRequests": questions, "requestState": str(state + 1)}
    send({"id": rid, "result": wish})


def tool_fail(rid: Any, params: Json) -> None:
    send({"id": rid, "error": {"code": params["arguments"]["code"], "message": "no", "data": {"why": None}}})


def tool_request(rid: Any, _params: Json) -> None:
    """Send a request, which this revision forbids."""
    send({"id": "mine", "method": "roots/list"})
    later(0.1, {"id": rid, "result": text([m for m in RECEIVED if m.get("id") == "mine"])})


def tool_odd(rid: Any, _params: Json) -> None:
    write(
        b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"hologram"}],"x":1.0E2,"n":null,'
        b'"resultType":"complete","s":"\\ud800"}}\n' % rid
    )


def tool_big(rid: Any, params: Json) -> None:
    send({"id": rid, "result": text("x" * params["arguments"]["n"])})


def discover(rid: Any, _params: Json) -> None:
    versions = ["2099-01-01"] if MODE == "refuse" else ["2026-07-28"]
    result = {"supportedVersions": versions, "capabilities": CAPABILITIES, "instructions": "be kind"}
    send({"id": rid, "result": result | {"resultType": "complete", "_meta": {PREFIX + "serverInfo": INFO}}})


def listen(rid: Any, params: Json) -> None:
    LISTENING[rid] = params["notifications"]
    tell(rid, "notifications/subscriptions/acknowledged", {"notifications": params["notifications"]})


def call(rid: Any, params: Json) -> None:
    globals().get(f"tool_{params.get('name')}", tool_echo)(rid, params)


def tools(rid: Any, _params: Json) -> None:
    region = {"type": "string", "x-mcp-header": "Region"}
    listed = [
        {
            "name": name.removeprefix("tool_"),
            "inputSchema": {"type": "object", "properties": {"region": region}},
        }
        for name in globals()
        if name.startswith("tool_")
    ]
    fresh = {"ttlMs": 1000, "cacheScope": "public", "resultType": "complete"}
    send({"id": rid, "result": {"tools": listed, **fresh}})


def vendor(rid: Any, params: Json) -> None:
    send({"id": rid, "result": {**params, "resultType": "complete"}})


METHODS = {
    "server/discover": discover,
    "subscriptions/listen": listen,
    "tools/list": tools,
    "tools/call": call,
    "vendor/echo": vendor,
}


def request(message: Json) -> None:
    rid, method, params = message["id"], message["method"], message.get("params") or {}
    if method == "initialize" and MODE == "initialize-params":
        send({"id": rid, "error": {"code": -32602, "message": "the envelope is missing"}})
    elif method not in METHODS:
        send({"id": rid, "error": {"code": -32601, "message": "no such method"}})
    elif PREFIX + "protocolVersion" not in (params.get("_meta") or {}):
        send({"id": rid, "error": {"code": -32602, "message": "the envelope is missing"}})
    else:
        METHODS[method](rid, params)


def main() -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        RECEIVED.append(message)
        if message.get("method") == "notifications/cancelled":
            LISTENING.pop(message["params"]["requestId"], None)
        if "id" in message and "method" in message:
            request(message)


MODE = sys.argv[1] if len(sys.argv) > 1 else "answer"

if __name__ == "__main__":
    main()
