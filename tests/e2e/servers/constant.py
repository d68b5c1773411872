"""Answers every JSON-RPC request over HTTP with one constant result: the ceiling that a client can reach.

There is no MCP server behind it. `constant.py --port PORT [--bind ADDRESS]`, path ignored.
"""

import argparse
import asyncio
import json

RESULT = {
    "content": [{"type": "text", "text": "x" * 64}],
    "tools": [{"name": "echo", "inputSchema": {"type": "object"}}],
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "serverInfo": {"name": "constant", "version": "1"},
}
TAIL = b',"result":' + json.dumps(RESULT, separators=(",", ":")).encode() + b"}"
ACCEPTED = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"


def reply_to(body: bytes) -> bytes:
    rid = json.loads(body).get("id") if body else None
    if rid is None:
        return ACCEPTED
    answer = b'{"jsonrpc":"2.0","id":' + json.dumps(rid).encode() + TAIL
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(answer)}\r\n\r\n"
    return head.encode() + answer


class Constant(asyncio.Protocol):
    """One connection; requests may arrive in pieces."""

    def __init__(self) -> None:
        self.buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            length = content_length(bytes(self.buffer[:end]))
            if len(self.buffer) < end + 4 + length:
                return
            body = bytes(self.buffer[end + 4 : end + 4 + length])
            del self.buffer[: end + 4 + length]
            self.transport.write(reply_to(body))


def content_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line[15:])
    return 0


async def serve(bind: str, port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Constant, bind, port)
    async with server:
        await server.serve_forever()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--bind", default="127.0.0.1")
    arguments = options.parse_args()
    asyncio.run(serve(arguments.bind, arguments.port))


if __name__ == "__main__":
    main()
