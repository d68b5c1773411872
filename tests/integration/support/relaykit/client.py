"""An MCP client of a few lines that shows every status, header and event."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Self

import httpx

from relaykit.waiting import eventually

Json = dict[str, Any]
BOTH = "application/json, text/event-stream"
# There is no TLS here: to read all authorities for each client anew would hold up whatever is timed.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def body(method: str, number: Any = None, **params: Any) -> Json:
    message: Json = {"jsonrpc": "2.0", "method": method, "params": params}
    return message if number is None else {**message, "id": number}


def events(text: str) -> list[Json]:
    """The messages of an event stream."""
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


@dataclass
class Client:
    """One session of one client. `token` None sends no Authorization header."""

    url: str
    token: str | None
    capabilities: Json = field(default_factory=dict)
    revision: str = "2025-11-25"
    sid: str | None = None
    sent: int = 1000
    notes: list[Json] = field(default_factory=list)
    initialized: Json = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.http = httpx.AsyncClient(timeout=20, trust_env=False, verify=NO_TLS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    def headers(self, **changes: str | None) -> dict[str, str]:
        """The usual headers; a changed one that is None is left out."""
        chosen: dict[str, str | None] = {
            "accept": BOTH,
            "content-type": "application/json",
            "authorization": f"Bearer {self.token}" if self.token else None,
            "mcp-session-id": self.sid,
            "mcp-protocol-version": self.revision if self.sid else None,
        }
        chosen |= {name.replace("_", "-"): value for name, value in changes.items()}
        return {name: value for name, value in chosen.items() if value is not None}

    async def post(self, message: Any, **headers: str | None) -> httpx.Response:
        content = message if isinstance(message, bytes) else json.dumps(message).encode()
        return await self.http.post(self.url, content=content, headers=self.headers(**headers))

    async def connect(self) -> Self:
        params = {
            "protocolVersion": self.revision,
            "capabilities": self.capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        }
        reply = await self.post(body("initialize", 0, **params))
        self.initialized = reply.json()
        assert "result" in self.initialized, self.initialized
        self.sid = reply.headers["mcp-session-id"]
        assert (await self.post(body("notifications/initialized"))).status_code == 202
        return self

    async def request(self, method: str, number: Any = None, **params: Any) -> Json:
        """Send a request; the answer as it came, what came before it in `notes`."""
        if number is None:
            self.sent += 1
            number = self.sent
        reply = await self.post(body(method, number, **params))
        if reply.headers.get("content-type", "").startswith("text/event-stream"):
            *notes, answer = events(reply.text)
            self.notes += notes
            return answer
        answer = reply.json()
        assert isinstance(answer, dict)
        return answer

    async def call(self, tool: str, number: Any = None, **arguments: Any) -> Json:
        return await self.request("tools/call", number, name=tool, arguments=arguments)

    async def text(self, tool: str, **arguments: Any) -> Any:
        """The JSON that a tool answers as its text."""
        answer = await self.call(tool, **arguments)
        return json.loads(answer["result"]["content"][0]["text"])

    async def notify(self, method: str, **params: Any) -> None:
        assert (await self.post(body(method, **params))).status_code == 202

    async def delete(self, **headers: str | None) -> httpx.Response:
        return await self.http.request("DELETE", self.url, headers=self.headers(**headers))

    @contextlib.asynccontextmanager
    async def stream(self, method: str = "GET", message: Json | None = None) -> AsyncIterator["Stream"]:
        """Open the session's stream (or the stream of a POST) and read it in the background."""
        content = json.dumps(message).encode() if message else None
        async with self.http.stream(method, self.url, content=content, headers=self.headers()) as response:
            stream = Stream(response)
            try:
                yield stream
            finally:
                await stream.stop()


class Stream:
    """An event stream; `next` gives its messages one by one."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.comments = 0
        self.ended = asyncio.Event()
        self._messages: asyncio.Queue[Json] = asyncio.Queue()
        self._task = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        try:
            async for line in self.response.aiter_lines():
                if line.startswith("data: "):
                    self._messages.put_nowait(json.loads(line[6:]))
                self.comments += line.startswith(":")
        except httpx.TransportError:
            pass
        finally:
            self.ended.set()

    async def next(self, seconds: float = 5) -> Json:
        async with asyncio.timeout(seconds):
            return await self._messages.get()

    async def commented(self, times: int) -> None:
        """Wait for that many comments."""

        async def enough() -> bool:
            return self.comments >= times

        await eventually(enough)

    def waiting(self) -> int:
        return self._messages.qsize()

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
