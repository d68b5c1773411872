"""A launcher's end of the socket that says what a test wants, and answers as a small server."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Answer = Callable[[Json], Json | None]
HELLO: Json = {"event": "hello", "version": 1, "incarnation": "abc", "pid": 17, "startTime": 1_764_470_000.0}
# A launcher that ended leaves its socket behind; asyncio removes it from Python 3.13 on.
_LEFT: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
CAPABILITIES: Json = {"tools": {}, "resources": {"subscribe": True}, "logging": {}}


class FakeLauncher:
    """Greets every connection with `greeting`; `connections` counts them, `received` holds their methods."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.greeting: list[Json] = [HELLO]
        self.capabilities = CAPABILITIES
        self.answers: dict[str, Answer] = {}
        """By method: what makes the answer to a message, None for silence."""
        self.reads = asyncio.Event()
        """Cleared: the server reads nothing."""
        self.reads.set()
        self.secret = "a secret of the server"
        self.connections = 0
        self.received: list[str] = []
        self._server: asyncio.Server | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, self.path, limit=2**24, **_LEFT)

    def say(self, message: Json | bytes) -> None:
        """Send a control message, or a raw line of the server."""
        assert self._writer is not None
        line = message if isinstance(message, bytes) else b"\0" + json.dumps(message).encode()
        self._writer.write(line + b"\n")

    def drop(self) -> None:
        """Break the connection."""
        assert self._writer is not None
        self._writer.close()

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        if self._writer is not None:
            self._writer.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.connections += 1
        for message in self.greeting:
            self.say(message)
        async for line in reader:
            await self.reads.wait()
            if line.startswith(b"\0"):
                self._mask(json.loads(line[1:]))
            else:
                self._answer(json.loads(line), writer)
        writer.close()

    def _mask(self, message: Json) -> None:
        if message["event"] == "mask":
            masked = [text.replace(self.secret, "***") for text in message["texts"]]
            self.say({"event": "masked", "id": message["id"], "texts": masked})

    def _answer(self, message: Json, writer: asyncio.StreamWriter) -> None:
        method = message.get("method")
        self.received.append(str(method))
        if method is None or "id" not in message:
            return
        if method in self.answers:
            chosen = self.answers[method](message)
            if chosen is not None:
                self.say(json.dumps({"jsonrpc": "2.0", "id": message["id"], **chosen}).encode())
            return
        result: Json = {"tools": []} if method == "tools/list" else {}
        if method == "initialize":
            info = {"name": "fake", "version": "1"}
            result = {
                "protocolVersion": "2025-11-25", "capabilities": self.capabilities, "serverInfo": info,
            }  # fmt: skip
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        writer.write(json.dumps(answer).encode() + b"\n")
