"""A client without sessions (revision 2026-07-28) of a few lines that shows statuses, headers, events."""

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from relaykit.client import BOTH, NO_TLS, Json, Stream, events
from relaykit.pod import TOKEN, Pod

REVISION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
SUBSCRIPTION = PREFIX + "subscriptionId"
_NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


@dataclass
class Caller:
    """Sends requests that stand for themselves; `notes` collects what came before their answers."""

    pod: Pod
    capabilities: Json = field(default_factory=dict)
    level: str | None = None
    token: str = TOKEN
    sent: int = 0
    notes: list[Json] = field(default_factory=list)

    def message(self, method: str, number: Any = None, **params: Any) -> Json:
        """A request with its envelope; a `_meta` among the params is added to it."""
        meta = {PREFIX + "protocolVersion": REVISION, PREFIX + "clientCapabilities": self.capabilities}
        if self.level is not None:
            meta[PREFIX + "logLevel"] = self.level
        self.sent += 1
        number = self.sent if number is None else number
        params["_meta"] = meta | params.get("_meta", {})
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    def headers(self, message: Json, **changes: str | None) -> dict[str, str]:
        """The headers that belong to a message; a changed one that is None is left out."""
        name = message.get("params", {}).get(_NAMES.get(message["method"], ""))
        chosen: dict[str, str | None] = {
            "accept": BOTH,
            "content-type": "application/json",
            "authorization": f"Bearer {self.token}",
            "mcp-protocol-version": REVISION,
            "mcp-method": message["method"],
            "mcp-name": name,
        } | {key.replace("_", "-"): value for key, value in changes.items()}
        return {key: value for key, value in chosen.items() if value is not None}

    async def post(self, message: Json, **headers: str | None) -> httpx.Response:
        content = json.dumps(message).encode()
        async with httpx.AsyncClient(timeout=20, trust_env=False, verify=NO_TLS) as http:
            return await http.post(self.pod.url, content=content, headers=self.headers(message, **headers))

    async def request(self, method: str, number: Any = None, **params: Any) -> Json:
        """The answer as it came."""
        reply = await self.post(self.message(method, number, **params))
        if reply.headers.get("content-type", "").startswith("text/event-stream"):
            *notes, answer = events(reply.text)
            self.notes += notes
            return answer
        return dict(reply.json())

    async def call(self, tool: str, **arguments: Any) -> Json:
        return await self.request("tools/call", name=tool, arguments=arguments)

    async def text(self, tool: str, **arguments: Any) -> Any:
        """The JSON that a tool answers as its text."""
        answer = await self.call(tool, **arguments)
        return json.loads(answer["result"]["content"][0]["text"])

    @contextlib.asynccontextmanager
    async def stream(self, message: Json) -> AsyncIterator[Stream]:
        """Send a message and read its stream in the background."""
        content = json.dumps(message).encode()
        async with (
            httpx.AsyncClient(timeout=20, trust_env=False, verify=NO_TLS) as http,
            http.stream("POST", self.pod.url, content=content, headers=self.headers(message)) as response,
        ):
            stream = Stream(response)
            try:
                yield stream
            finally:
                await stream.stop()
