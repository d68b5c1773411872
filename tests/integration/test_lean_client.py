"""The client of the end-to-end tests and benchmarks, against replies written by hand."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from clusterkit.leanmcp import Endpoint, HttpError, McpClient, RpcError

JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def with_length(head: bytes, body: bytes) -> bytes:
    return head + b"content-length: %d\r\n\r\n" % len(body) + body


def chunked(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@asynccontextmanager
async def answering(*replies: bytes) -> AsyncIterator[Endpoint]:
    """A server that answers its requests, one after the other, with these bytes."""
    left = list(replies)
    done: list[asyncio.StreamWriter] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        done.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(left.pop(0))
        await writer.drain()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield Endpoint("127.0.0.1", port, f"127.0.0.1:{port}")
        for writer in done:
            writer.close()


def result(value: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": value}).encode()


async def test_a_json_reply_is_returned() -> None:
    async with answering(with_length(JSON_HEAD, result({"a": 1}))) as endpoint:
        assert await McpClient(endpoint).request("ping") == {"a": 1}


async def test_a_stream_reply_is_returned_and_its_notifications_kept() -> None:
    note = b'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}\n\n'
    answer = b"data: " + result({"a": "é"}) + b"\n\n"
    body = chunked(b": ping\n\n", note[:20], note[20:], answer)
    async with answering(STREAM_HEAD + body) as endpoint:
        client = McpClient(endpoint)
        assert await client.request("tools/list") == {"a": "é"}
        assert [message["method"] for message in client.notes] == ["notifications/progress"]


async def test_an_error_reply_carries_code_and_data() -> None:
    error = {"code": -32000, "message": "gone", "data": {"why": "x"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode()
    async with answering(with_length(JSON_HEAD, body)) as endpoint:
        with pytest.raises(RpcError) as caught:
            await McpClient(endpoint).request("ping")
        assert (caught.value.code, caught.value.data) == (-32000, {"why": "x"})


async def test_a_refusal_that_is_no_json_rpc_is_an_http_error() -> None:
    head = b"HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\n"
    async with answering(with_length(head, b'{"error":"Unauthorized"}')) as endpoint:
        with pytest.raises(HttpError) as caught:
            await McpClient(endpoint).request("ping")
        assert caught.value.reply.status == 401


async def test_nothing_is_sent_twice_when_a_connection_breaks() -> None:
    async with answering(b"", with_length(JSON_HEAD, result({}))) as endpoint:
        client = McpClient(endpoint, limit=0.2)
        with pytest.raises((TimeoutError, EOFError)):
            await client.request("ping")


async def test_messages_of_the_get_stream_come_as_they_are_sent() -> None:
    first, second = b'data: {"n":1}\n', b'\ndata: {"n":2}\n\n'
    async with (
        answering(STREAM_HEAD + chunked(first, second)) as endpoint,
        McpClient(endpoint).listen() as messages,
    ):
        assert [message async for message in messages] == [{"n": 1}, {"n": 2}]
