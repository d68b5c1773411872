"""A stdio MCP server on the standard library alone that misbehaves on demand.

`scripted.py [MODE]`: what it does at the start: answer (default), noise, refuse, version, nothing, exit,
empty, resources (no tools), old (revision 2024-11-05), lists (2,000 tools), greedy (holds 256 MiB),
leak and leaklist (what it says of itself holds its secret, the value of SCRIPTED_SECRET; so does the
refusal). Its tools do the rest.
"""

import base64
import json
import os
import signal
import sys
import threading
import time
from typing import Any

Json = dict[str, Any]
OUT, LOCK = sys.stdout.buffer, threading.Lock()
RECEIVED: list[str] = []
CANCELLED: list[Any] = []
ANSWERS: dict[Any, Json] = {}
ANSWERED = threading.Condition()
EATEN: list[bytearray] = []
EXTRA_TOOLS: list[str] = []
RELEASED = threading.Event()
LISTED = [0]
FAIL_LIST = [False]


def send(*messages: Json) -> None:
    """Send messages in one write: whoever reads them sees none without the others."""
    lines = (json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) for message in messages)
    write("".join(f"{line}\n" for line in lines).encode())


def write(data: bytes) -> None:
    with LOCK:
        OUT.write(data)
        OUT.flush()


def text(value: str) -> Json:
    return {"content": [{"type": "text", "text": value}]}


def later(seconds: float, work: Any) -> None:
    threading.Timer(seconds, work).start()


def when_released(message: Json) -> None:
    """Send a message as soon as the test lets it: a time would be too short on one machine or another."""

    def work() -> None:
        RELEASED.wait()
        send(message)

    threading.Thread(target=work, daemon=True).start()


def watch_for_release() -> None:
    """SIGUSR1 releases what is held, and all that would be held later."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})

    def work() -> None:
        signal.sigwait({signal.SIGUSR1})
        RELEASED.set()

    threading.Thread(target=work, daemon=True).start()


def ask(number: Any, method: str, params: Json) -> Json:
    """Send a request to the client and wait for its answer."""
    send({"id": number, "method": method, "params": params})
    with ANSWERED:
        ANSWERED.wait_for(lambda: number in ANSWERS, 10)
        return ANSWERS.pop(number, {"timeout": True})


def tool_progress(rid: Any, args: Json, meta: Json) -> None:
    token = meta.get("progressToken")
    for step in range(3):
        note = {"progressToken": token, "progress": step, "message": args.get("tag")}
        send({"method": "notifications/progress", "params": note})
    send({"id": rid, "result": text(json.dumps(token))})
    send({"method": "notifications/progress", "params": {"progressToken": token, "progress": 99}})


def tool_change(rid: Any, args: Json, _meta: Json) -> None:
    EXTRA_TOOLS.append(f"extra{len(EXTRA_TOOLS)}")
    FAIL_LIST[0] = bool(args.get("fail"))
    for _ in range(args.get("notices", 1)):
        send({"method": "notifications/tools/list_changed"})
    send({"id": rid, "result": text("changed")})


def tool_ask(rid: Any, args: Json, _meta: Json) -> None:
    def work() -> None:
        answer = ask(args.get("id", 1), args["method"], args.get("params", {}))
        send({"id": rid, "result": text(json.dumps(answer))})

    threading.Thread(target=work).start()


def tool_ask_and_go(rid: Any, args: Json, _meta: Json) -> None:
    """Ask the client for something, and do without the answer once that is released."""
    send({"id": args["id"], "method": args["method"], "params": args.get("params", {})})
    when_released({"id": rid, "result": text("gone ahead")})


def tool_withdraw(rid: Any, args: Json, _meta: Json) -> None:
    """Ask the client for something and take it back at once, before anybody can act upon it."""
    send(
        {"id": "w", "method": args["method"], "params": {}},
        {"method": "notifications/cancelled", "params": {"requestId": "w", "reason": "changed my mind"}},
        {"id": rid, "result": text("withdrawn")},
    )


def tool_sleep(rid: Any, args: Json, _meta: Json) -> None:
    def wake() -> None:
        if rid not in CANCELLED or args.get("late"):
            send({"id": rid, "result": text("slept")})

    later(args["seconds"], wake)


def tool_hold(rid: Any, _args: Json, _meta: Json) -> None:
    """Answer once it is released, whether it was cancelled or not."""
    when_released({"id": rid, "result": text("held")})


def tool_raw(rid: Any, args: Json, _meta: Json) -> None:
    """Write these bytes, one at a time if asked; `ID` in them is this call's id."""
    data = base64.b64decode(args["data"]).replace(b"ID", str(rid).encode()) * args.get("times", 1)
    for piece in [bytes([byte]) for byte in data] if args.get("slowly") else [data]:
        write(piece)


def tool_unrelated(rid: Any, args: Json, _meta: Json) -> None:
    params = {"data": "x" * args["size"]} if "size" in args else args.get("params", {})
    send({"method": args["method"], "params": params})
    send({"id": rid, "result": text("sent")})


def tool_block(rid: Any, args: Json, _meta: Json) -> None:
    time.sleep(args["seconds"])
    send({"id": rid, "result": text("read again")})


def tool_close(_rid: Any, _args: Json, _meta: Json) -> None:
    OUT.flush()
    os.close(1)


def tool_stats(rid: Any, _args: Json, _meta: Json) -> None:
    stats = {
        "initialize": RECEIVED.count("initialize"),
        "received": RECEIVED,
        "cancelled": CANCELLED,
        "listed": LISTED[0],
        "pid": os.getpid(),
        "id": rid,
    }
    send({"id": rid, "result": text(json.dumps(stats))})


def tool_flood(rid: Any, args: Json, _meta: Json) -> None:
    sys.stderr.write("x" * args["bytes"])
    sys.stderr.flush()
    send({"id": rid, "result": text("flooded")})


def tool_die(_rid: Any, _args: Json, _meta: Json) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def tool_exit(_rid: Any, args: Json, _meta: Json) -> None:
    os._exit(args.get("code", 0))


def tool_eat(rid: Any, args: Json, _meta: Json) -> None:
    """Hold so many MiB more."""
    EATEN.append(bytearray(b"x") * (args["mib"] << 20))
    send({"id": rid, "result": text("eaten")})


def tool_big(rid: Any, args: Json, _meta: Json) -> None:
    send({"id": rid, "result": text(args.get("char", "x") * args["n"])})


def tool_tail(rid: Any, args: Json, _meta: Json) -> None:
    """A result before its id, as the TypeScript library writes it."""
    result = json.dumps(text(args.get("char", "x") * args.get("n", 1)))
    write(f'{{"result":{result},"jsonrpc":"2.0","id":{rid}}}\n'.encode())


def tool_log(rid: Any, args: Json, _meta: Json) -> None:
    send({"method": "notifications/message", "params": {"level": args.get("level", "info"), "data": "log"}})
    send({"id": rid, "result": text("logged")})


def tool_updated(rid: Any, args: Json, _meta: Json) -> None:
    send({"method": "notifications/resources/updated", "params": {"uri": args["uri"]}})
    send({"id": rid, "result": text("updated")})


def tool_odd(rid: Any, _args: Json, _meta: Json) -> None:
    start = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"hologram"}],"x":1.0E2,"n":null,' % rid
    write(start + b'"big":123456789012345678901234567890,"s":"\\ud800"}}\n')


def tool_echo(rid: Any, args: Json, _meta: Json) -> None:
    later(args.get("delay", 0), lambda: send({"id": rid, "result": text(json.dumps(args.get("text", "")))}))


def call(rid: Any, params: Json) -> None:
    tool = globals().get(f"tool_{params.get('name')}", tool_echo)
    tool(rid, params.get("arguments") or {}, params.get("_meta") or {})


def tools(params: Json) -> Json:
    LISTED[0] += 1
    names = [name.removeprefix("tool_") for name in globals() if name.startswith("tool_")] + EXTRA_TOOLS
    listed = [{"name": name, "description": name, "inputSchema": {"type": "object"}} for name in names]
    if MODE == "leak":
        listed = [{"name": "a", "title": SECRET, "description": "d" * 240 + SECRET}]
    if MODE == "lists":
        page = int(params.get("cursor") or 0)
        many = [{"name": f"t{i}", "description": "d" * 2048, "inputSchema": "odd"} for i in range(2000)]
        cursor = {"nextCursor": str(page + 500)} if page + 500 < len(many) else {}
        return {"tools": many[page : page + 500], **cursor}
    return {"tools": listed}


def initialize(rid: Any, params: Json) -> None:
    version = "2025-11-25" if MODE != "version" else "2023-01-01"
    capabilities: Json = {
        "tools": {"listChanged": True}, "logging": {}, "resources": {"subscribe": True},
        "experimental": {"vendor/x": {}},
    }  # fmt: skip
    if MODE == "resources":
        capabilities = {"resources": {}}
    if MODE == "old":
        version, capabilities = "2024-11-05", {"tools": {}}
    if MODE == "refuse":
        send({"id": rid, "error": {"code": -32603, "message": f"not today {SECRET}"}})
    elif MODE == "empty":
        send({"id": rid, "result": {}})
    elif MODE == "exit":
        sys.stderr.write("Traceback: no licence\n")
        os._exit(3)
    elif MODE != "nothing":
        asked, declared = params["protocolVersion"], params["capabilities"]
        info = {"name": "scripted", "version": "1", "asked": asked, "declared": declared}
        if MODE == "leak":
            info["name"] += f" {SECRET}"
            capabilities["experimental"] = {SECRET: {"key": SECRET}}
        send(
            {
                "id": rid,
                "result": {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info},
            }
        )


def request(rid: Any, method: str, params: Json) -> None:
    if method == "initialize":
        initialize(rid, params)
    elif method == "tools/list":
        if FAIL_LIST[0] or MODE == "leaklist":
            send({"id": rid, "error": {"code": -32000, "message": f"no list now {SECRET}"}})
        else:
            send({"id": rid, "result": tools(params)})
    elif method == "tools/call":
        call(rid, params)
    elif method in ("ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"):
        send({"id": rid, "result": {}})
    elif method == "resources/read":
        error = {"code": -32002, "message": "Resource not found", "data": {"uri": params.get("uri")}}
        send({"id": rid, "error": error})
    elif method == "vendor/echo":
        send({"id": rid, "result": params})
    else:
        data = {"method": method}
        send({"id": rid, "error": {"code": -32601, "message": "no such method", "data": data}})


def main() -> None:
    watch_for_release()
    if MODE == "noise":
        write(b"Starting...\n\xff\xfe not UTF-8\n[1,2]\n{broken\n")
    if MODE == "greedy":
        EATEN.append(bytearray(b"x") * (256 << 20))
    if MODE == "leak":
        write(f"noise {SECRET}\n".encode())
    for line in sys.stdin.buffer:
        message = json.loads(line)
        method = message.get("method")
        if method is None:
            with ANSWERED:
                ANSWERS[message["id"]] = {k: v for k, v in message.items() if k in ("result", "error")}
                ANSWERED.notify_all()
            continue
        level = (message.get("params") or {}).get("level")
        RECEIVED.append(f"{method}:{level}" if level else method)
        if method == "notifications/cancelled":
            CANCELLED.append(message["params"]["requestId"])
        if "id" in message:
            request(message["id"], method, message.get("params") or {})


SECRET = os.environ.get("SCRIPTED_SECRET", "")
MODE = sys.argv[1] if len(sys.argv) > 1 else "answer"

if __name__ == "__main__":
    main()
