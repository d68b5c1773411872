"""A small MCP client over Streamable HTTP, on the standard library alone.

Tests use it to send exactly the bytes they mean, and to see exactly what came back; benchmarks use it
because a general HTTP client costs more per call than the relay they measure. The file also runs
inside a pod, so it imports nothing of its neighbours.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]

REVISION = "2025-11-25"
ENCODE = json.JSONEncoder(separators=(",", ":")).encode
CONTENT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


class RpcError(Exception):
    """The server or the relay answered with a JSON-RPC error."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error.get('code')}: {error.get('message')}")
        self.code: int = error.get("code", 0)
        self.message: str = error.get("message", "")
        self.data: Any = error.get("data")


class HttpError(Exception):
    """The reply was no 2xx; `reply` has it whole."""

    def __init__(self, reply: "Reply") -> None:
        super().__init__(f"HTTP {reply.status}: {reply.body[:300]!r}")
        self.reply = reply


@dataclass(frozen=True)
class Endpoint:
    """Where to connect (`address`, `port`) and under which name (`host`) and path to ask."""

    address: str
    port: int
    host: str
    path: str = "/mcp"


@dataclass(frozen=True)
class Reply:
    """One HTTP reply; header names in lower case, the body decoded from its chunks."""

    status: int
    headers: dict[str, str]
    body: bytes = b""

    def messages(self) -> list[Json]:
        """The JSON-RPC messages of the body, whether JSON or an event stream."""
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            data = (line[5:].strip() for line in self.body.split(b"\n") if line.startswith(b"data:"))
            return [json.loads(item) for item in data if item]
        return [json.loads(self.body)] if self.body else []


async def read_head(reader: asyncio.StreamReader) -> Reply:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    fields = (line.partition(":") for line in lines[1:] if line)
    return Reply(int(lines[0].split(" ", 2)[1]), {name.lower(): value.strip() for name, _, value in fields})


async def chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")


async def read_body(reader: asyncio.StreamReader, head: Reply) -> bytes:
    if "chunked" in head.headers.get("transfer-encoding", ""):
        return b"".join([chunk async for chunk in chunks(reader)])
    if length := head.headers.get("content-length"):
        return await reader.readexactly(int(length))
    return b"" if head.status in (202, 204) else await reader.read()


@dataclass
class Http:
    """HTTP/1.1 requests to one endpoint; nothing is ever sent twice.

    With `keep_alive` connections are reused, else each request has its own.
    """

    endpoint: Endpoint
    keep_alive: bool = False
    idle: list[Stream] = field(default_factory=list)

    async def send(self, method: str, headers: dict[str, str], body: bytes) -> Stream:
        """Send one request and return the connection, from which its reply is to be read."""
        fields = "\r\n".join(f"{name}: {value}" for name, value in headers.items())
        start = f"{method} {self.endpoint.path} HTTP/1.1\r\nhost: {self.endpoint.host}\r\n{fields}"
        reader, writer = await self.connection()
        writer.write(f"{start}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        return reader, writer

    async def connection(self) -> Stream:
        """An idle connection that the other side has not closed meanwhile, or a new one."""
        while self.idle:
            reader, writer = self.idle.pop()
            if not reader.at_eof():
                return reader, writer
            await shut(writer)
        return await asyncio.open_connection(self.endpoint.address, self.endpoint.port, limit=1 << 20)

    async def request(self, method: str, headers: dict[str, str], body: bytes = b"") -> Reply:
        reader, writer = await self.send(method, headers, body)
        try:
            head = await read_head(reader)
            reply = Reply(head.status, head.headers, await read_body(reader, head))
        except BaseException:
            writer.close()  # cancelled or broken: the other side must see the connection go
            raise
        if self.keep_alive and reply.headers.get("connection", "").lower() != "close":
            self.idle.append((reader, writer))
        else:
            await shut(writer)
        return reply

    async def close(self) -> None:
        while self.idle:
            await shut(self.idle.pop()[1])


async def shut(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


class McpClient:
    """One MCP client with its own session, of the revisions that have sessions.

    `notes` collects the notifications that came with replies. `limit` is seconds per request; a benchmark
    sets none, because the timer costs a tenth of a call.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        token: str | None = None,
        *,
        keep_alive: bool = False,
        limit: float | None = 40,
    ) -> None:
        self.http = Http(endpoint, keep_alive)
        self.headers = dict(CONTENT)
        if token is not None:
            self.headers["authorization"] = f"Bearer {token}"
        self.limit = limit
        self.next_id = 0
        self.notes: list[Json] = []

    @property
    def session(self) -> str | None:
        return self.headers.get("mcp-session-id")

    async def connect(self) -> Json:
        """Open a session and return what `initialize` answered."""
        answer = await self.request(
            "initialize",
            {
                "protocolVersion": REVISION,
                "capabilities": {},
                "clientInfo": {"name": "clusterkit", "version": "1"},
            },
        )
        self.headers["mcp-protocol-version"] = answer["protocolVersion"]
        await self.notify("notifications/initialized")
        return answer

    async def raw(self, method: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Reply:
        """One HTTP request with the client's headers, or with `headers` alone."""
        send = self.http.request(method, self.headers if headers is None else headers, body)
        if self.limit is None:
            return await send
        async with asyncio.timeout(self.limit):
            return await send

    async def post(self, message: Json) -> Reply:
        reply = await self.raw("POST", ENCODE(message).encode())
        if session := reply.headers.get("mcp-session-id"):
            self.headers["mcp-session-id"] = session
        return reply

    async def request(self, method: str, params: Json | None = None, rid: Any = None) -> Json:
        """The result of one request. Raises RpcError, HttpError."""
        if rid is None:
            self.next_id += 1
            rid = self.next_id
        reply = await self.post({"jsonrpc": "2.0", "id": rid, "method": method, "params": params or {}})
        answer: Json | None = None
        for message in reply.messages() if reply.headers.get("content-type") else []:
            if "method" in message:
                self.notes.append(message)
            else:
                answer = message
        if answer is None or "jsonrpc" not in answer:
            raise HttpError(reply)
        if "error" in answer:
            raise RpcError(answer["error"])
        if answer.get("id") != rid:
            raise AssertionError(f"the answer to {answer.get('id')!r} came for {rid!r}")
        result: Json = answer["result"]
        return result

    async def notify(self, method: str, params: Json | None = None) -> None:
        reply = await self.post({"jsonrpc": "2.0", "method": method, "params": params or {}})
        if reply.status >= 300:
            raise HttpError(reply)

    async def tools(self) -> list[str]:
        return [tool["name"] for tool in (await self.request("tools/list"))["tools"]]

    async def call(self, tool: str, rid: Any = None, **arguments: Any) -> str:
        """The text of a tool's result. Raises AssertionError when the tool says `isError`."""
        result = await self.request("tools/call", {"name": tool, "arguments": arguments}, rid)
        text = "".join(part.get("text", "") for part in result["content"])
        if result.get("isError"):
            raise AssertionError(f"{tool} failed: {text}")
        return text

    @contextlib.asynccontextmanager
    async def listen(self) -> AsyncIterator[AsyncIterator[Json]]:
        """The GET stream: an iterator over the messages that come on it."""
        reader, writer = await self.http.send("GET", self.headers, b"")
        try:
            head = await read_head(reader)
            if head.status != 200:
                raise HttpError(Reply(head.status, head.headers, await read_body(reader, head)))
            yield events(chunks(reader))
        finally:
            await shut(writer)

    async def close(self) -> None:
        """End the session and the connections."""
        if self.session:
            await self.raw("DELETE")
        await self.http.close()


async def events(parts: AsyncIterator[bytes]) -> AsyncIterator[Json]:
    """The messages of an event stream whose pieces may end anywhere."""
    rest = b""
    async for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            if line.startswith(b"data:") and (data := line[5:].strip()):
                yield json.loads(data)
