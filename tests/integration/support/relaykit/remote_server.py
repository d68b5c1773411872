"""A remote MCP server of the standard library, as a process: it does what `POST /control` asked for.

    python remote_server.py PORT [CERTIFICATE KEY]

`GET /stats` tells what it has seen. Streamable HTTP at /mcp (sessions), SSE at /sse; /moved leads to /mcp,
/away to another origin.
"""

import json
import queue
import ssl
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
BIG = 12345678901234567890


class World:
    """What the server knows; `control` overrides the defaults."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sessions: dict[str, queue.Queue[bytes | None]] = {}
        self.streams: dict[str, queue.Queue[bytes | None]] = {}
        self.seen: list[str] = []
        self.headers: list[Json] = []
        self.counter = 0
        self.deleted = 0
        self.gets = 0
        self.resumed: list[str] = []
        self.control: Json = {}
        self.tools = ["echo"]

    def obey(self, control: Json) -> None:
        """From now on behave like this; what is pushed goes out on all streams, which a cut ends."""
        self.control = control
        for name in control.get("forget", []):
            getattr(self, name).clear()
        self.tools = control.get("tools", self.tools)
        for stream in self.streams.values():
            for message in control.get("push", []):
                stream.put(event(message))
            if control.get("cut"):
                stream.put(None)

    def refusal(self, method: str) -> Json | None:
        """The next answer that was ordered for this method."""
        with self.lock:
            for order in self.control.get("refuse", []):
                if order["times"] > 0 and order.get("method", method) == method:
                    order["times"] -= 1
                    return dict(order)
        return None


WORLD = World()


def result(message: Json) -> Json:
    """What a request is answered."""
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        return {
            "protocolVersion": WORLD.control.get("revision", "2025-11-25"),
            "capabilities": {"tools": {"listChanged": True}, "logging": {}},
            "serverInfo": {"name": "far", "version": "1", "title": WORLD.control.get("title", "Far")},
        }
    if method == "tools/list":
        schema = {"type": "object", "x-unknown": BIG}
        return {"tools": [{"name": name, "inputSchema": schema, "future": [1]} for name in WORLD.tools]}
    if method == "tools/call":
        return called(params)
    return {}


def called(params: Json) -> Json:
    arguments = params.get("arguments", {})
    if params["name"] == "count":
        with WORLD.lock:
            WORLD.counter += 1
    if params["name"] == "slow":
        time.sleep(arguments["seconds"])
    text = "x" * arguments["bytes"] if params["name"] == "big" else json.dumps(arguments)
    return {"content": [{"type": "text", "text": text}], "future": {"big": BIG, "none": None}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path == "/control":
            WORLD.obey(json.loads(body))
            self.reply(200, {})
        elif self.path in ("/moved", "/away"):
            self.reply(307, {}, location="/mcp" if self.path == "/moved" else WORLD.control["away"])
        else:
            self.message(json.loads(body))

    def message(self, message: Json) -> None:
        method = message.get("method", "response")
        with WORLD.lock:
            WORLD.seen.append(method)
            WORLD.headers.append({name.lower(): value for name, value in self.headers.items()})
        order = WORLD.refusal(method)
        if order is not None:
            if order.get("close"):
                self.close_connection = True
                if "id" in message and order.get("work"):
                    result(message)
                return
            raw = order.get("body", {})
            if order.get("addressed"):
                raw = {**raw, "id": message.get("id")}
            self.reply(order["status"], raw, **order.get("headers", {}))
            return
        if self.path.startswith("/messages"):
            self.sse_message(message)
            return
        if self.path != "/mcp":
            self.reply(404, "Not Found")
            return
        self.streamable(message, method)

    def streamable(self, message: Json, method: str) -> None:
        sid = self.headers.get("mcp-session-id")
        given: Json = {}
        if method == "initialize":
            sid = uuid.uuid4().hex
            WORLD.sessions[sid] = queue.Queue()
            given = {"mcp-session-id": sid}
        elif sid not in WORLD.sessions:
            status, text, code = WORLD.control.get("spelling", [404, "Session not found", -32001])
            self.reply(
                status, {"jsonrpc": "2.0", "id": "server-error", "error": {"code": code, "message": text}}
            )
            return
        if "id" not in message or "method" not in message:
            self.reply(202, None)
            return
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result(message)}
        if WORLD.control.get("sse") and method == "tools/call":
            self.streamed(message, answer)
            return
        self.reply(200, answer, **given)

    def streamed(self, message: Json, answer: Json) -> None:
        self.begin_stream()
        token = message["params"].get("_meta", {}).get("progressToken")
        if token is not None:
            params = {"progressToken": token, "progress": 1}
            self.chunk(event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
        if WORLD.control.get("resumable"):
            self.chunk(b"id: call-1\ndata:\n\n")
            WORLD.sessions["resume"] = queue.Queue()
            WORLD.sessions["resume"].put(event(answer))
            self.close_connection = True
            return
        self.chunk(event(answer))
        self.chunk(b"")

    def sse_message(self, message: Json) -> None:
        sid = self.path.partition("=")[2]
        stream = WORLD.streams.get(sid)
        if stream is None:
            self.reply(404, "Could not find session")
            return
        self.reply(202, "Accepted")
        if "id" in message and "method" in message:
            stream.put(event({"jsonrpc": "2.0", "id": message["id"], "result": result(message)}))

    def do_GET(self) -> None:
        if self.path == "/stats":
            told = ("seen", "headers", "counter", "deleted", "gets", "resumed")
            self.reply(200, {name: getattr(WORLD, name) for name in told} | {"streams": len(WORLD.streams)})
            return
        WORLD.gets += 1
        last = self.headers.get("last-event-id")
        if last is not None and "resume" in WORLD.sessions:
            WORLD.resumed.append(last)
            self.begin_stream()
            self.chunk(WORLD.sessions.pop("resume").get() or b"")
            self.chunk(b"")
            return
        if self.path == "/sse":
            sid = uuid.uuid4().hex
            self.stream(
                sid,
                f"event: endpoint\ndata: {WORLD.control.get('endpoint', '/messages')}?s={sid}\n\n".encode(),
            )
            return
        sid = self.headers.get("mcp-session-id", "")
        if self.path != "/mcp" or WORLD.control.get("streams") is False:
            self.reply(405, "Method Not Allowed")
        elif sid not in WORLD.sessions:
            self.reply(404, "Not Found")
        else:
            self.stream(sid, b": hello\n\n")

    def stream(self, sid: str, first: bytes) -> None:
        mine: queue.Queue[bytes | None] = queue.Queue()
        WORLD.streams[sid] = mine
        self.begin_stream()
        self.chunk(first)
        try:
            while (line := mine.get()) is not None:
                self.chunk(line)
            self.chunk(b"")
        except OSError:
            pass  # the client went away
        finally:
            WORLD.streams.pop(sid, None)

    def do_DELETE(self) -> None:
        WORLD.deleted += 1
        WORLD.sessions.pop(self.headers.get("mcp-session-id", ""), None)
        self.reply(200, None)

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def reply(self, status: int, body: Any, **headers: str) -> None:
        text = (
            b""
            if body is None
            else body.encode()
            if isinstance(body, str)
            else json.dumps(body, indent=1).encode()
        )
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-type", "text/plain" if isinstance(body, str) else "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def event(message: Json) -> bytes:
    return b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n"


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_: Any) -> None:
        pass  # clients go away in the middle of things here


def main() -> None:
    server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
    if len(sys.argv) > 2:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2], sys.argv[3])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
