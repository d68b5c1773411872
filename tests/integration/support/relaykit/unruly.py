"""A remote MCP server in a thread, which answers as a test's own functions will."""

import json
import queue
import threading
from collections.abc import Awaitable, Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from relaykit.pod import Pod
from relaykit.ports import free_port
from relaykit.waiting import eventually

Json = dict[str, Any]
Post = Callable[["Exchange", Json], bool]
"""Answers a POST; False: it is answered as usual."""
Get = Callable[["Exchange"], bool]
"""Answers a GET; False: with 405."""
MakeRelay = Callable[..., Awaitable[Pod]]
"""Makes a running relay in front of the server: `await relay(path, where={…}, **settings)`."""
INITIALIZE: Json = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "unruly", "version": "1"},
}
RESULTS: dict[str, Json] = {
    "initialize": INITIALIZE,
    "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "ok"}]},
}


def never(*_: Any) -> bool:
    """Answer nothing oneself."""
    return False


class Unruly:
    """The server; `seen` are the methods that came (GET, DELETE too), `asked` the tools called."""

    def __init__(self, post: Post = never, get: Get = never) -> None:
        self.post, self.get = post, get
        self.port = free_port()
        self.seen: list[str] = []
        self.asked: list[str] = []
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        """Listen; after `stop` on the same port again."""
        handler = type("Bound", (Exchange,), {"unruly": self})
        self._server = _Server(("127.0.0.1", self.port), handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def deaf(self) -> None:
        """Take no new connections."""
        if self._server is not None:
            self._server.socket.close()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def url(self, path: str = "/mcp") -> str:
        return f"http://127.0.0.1:{self.port}{path}"


class Exchange(BaseHTTPRequestHandler):
    """One request, and what is answered; the connection ends with it."""

    protocol_version = "HTTP/1.1"
    unruly: Unruly

    def log_message(self, *_: Any) -> None:
        pass

    @property
    def sid(self) -> str | None:
        return self.headers.get("mcp-session-id")

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = message.get("method")
        self.unruly.seen.append(method or "response")
        if method == "tools/call":
            self.unruly.asked.append(message["params"]["name"])
        if self.unruly.post(self, message):
            return
        if "id" not in message or method is None:
            self.reply(202)
            return
        headers = {"mcp-session-id": f"s{len(self.unruly.seen)}"} if method == "initialize" else {}
        self.result(message, RESULTS.get(method, {}), **headers)

    def do_GET(self) -> None:
        self.unruly.seen.append("GET")
        if not self.unruly.get(self):
            self.reply(405)

    def do_DELETE(self) -> None:
        self.unruly.seen.append("DELETE")
        self.reply(200)

    def result(self, message: Json, result: Json, **headers: str) -> None:
        self.reply(200, {"jsonrpc": "2.0", "id": message["id"], "result": result}, **headers)

    def error(self, message: Json, status: int, code: int, text: str) -> None:
        error = {"code": code, "message": text}
        self.reply(status, {"jsonrpc": "2.0", "id": message.get("id"), "error": error})

    def reply(self, status: int, body: Json | bytes = b"", **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        self._head(status, "application/json", {"content-length": str(len(data))} | given)
        self.wfile.write(data)

    def page(self, status: int, kind: str, body: bytes) -> None:
        """What is no JSON-RPC."""
        self._head(status, kind, {"content-length": str(len(body))})
        self.wfile.write(body)

    def events(self, *chunks: bytes) -> None:
        """Begin an event stream; it ends when the test's function returns."""
        self.stream(chunks)

    def stream(self, chunks: Iterable[bytes]) -> None:
        """An event stream whose chunks come one by one."""
        self._head(200, "text/event-stream", {})
        for chunk in chunks:
            self.wfile.write(chunk)
            self.wfile.flush()

    def _head(self, status: int, kind: str, headers: dict[str, str]) -> None:
        self.close_connection = True
        self.send_response(status)
        for name, value in ({"content-type": kind, "connection": "close"} | headers).items():
            self.send_header(name, value)
        self.end_headers()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 100

    def handle_error(self, *_: Any) -> None:
        pass  # clients go away in the middle of things here


class Old:
    """A server over SSE, whose stream can fall silent."""

    def __init__(self) -> None:
        self.silent = False
        self._streams: list[queue.Queue[bytes]] = []

    def post(self, http: Exchange, message: Json) -> bool:
        if http.path == "/sse":
            http.reply(405)
            return True
        http.reply(202)
        if not self.silent and "id" in message and "method" in message:
            result = RESULTS.get(message["method"], {})
            self.say({"jsonrpc": "2.0", "id": message["id"], "result": result})
        return True

    def get(self, http: Exchange) -> bool:
        self.silent = False
        return self.listen(http, b"event: endpoint\ndata: /messages\n\n")

    def listen(self, http: Exchange, first: bytes) -> bool:
        """Open a stream, the newest from now on."""
        mine: queue.Queue[bytes] = queue.Queue()
        mine.put(first)
        self._streams.append(mine)
        http.stream(iter(mine.get, b""))
        return True

    def say(self, message: Json) -> None:
        """Send a message on the newest stream."""
        self._streams[-1].put(b"data: %b\n\n" % json.dumps(message).encode())

    def end(self) -> None:
        """End the newest stream."""
        self._streams[-1].put(b"")


async def came(unruly: Unruly, method: str, times: int) -> None:
    """Wait until a method has come so often."""

    async def seen() -> bool:
        return unruly.seen.count(method) >= times

    await eventually(seen, 20)


async def ready(relay: MakeRelay, *arguments: Any, **settings: Any) -> Pod:
    """A relay that has a session with the server."""
    pod = await relay(*arguments, **settings)
    await pod.until("Connected")
    return pod
