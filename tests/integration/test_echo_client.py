"""The client that the benchmarks measure with, against replies written by hand."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress

import pytest
from echo import Echo, echoes

from clusterkit.leanmcp import Endpoint, McpClient
from relaykit.waiting import eventually

TEXT = "some text"
JSON_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def answer(number: int, text: str = TEXT) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"%b"}]}}' % (
        number,
        text.encode(),
    )


def plain(body: bytes) -> bytes:
    return JSON_HEAD % len(body) + body


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def served_by(handle: Handler) -> AsyncIterator[Echo]:
    """A client of a server that does this with each connection, until the client goes."""
    connections = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(asyncio.current_task())
        with closing(writer), suppress(asyncio.IncompleteReadError):  # the client has gone
            await handle(reader, writer)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        client = McpClient(Endpoint("127.0.0.1", port, f"127.0.0.1:{port}"))
        [echo] = await echoes([client], TEXT)
        try:
            yield echo
        finally:
            echo.close()
            await asyncio.gather(*filter(None, connections))


async def request(reader: asyncio.StreamReader) -> int:
    """The id of the next request."""
    head = await reader.readuntil(b"\r\n\r\n")
    message = json.loads(await reader.readexactly(int(head.split(b"content-length: ")[1])))
    assert message["method"] == "tools/call"
    return int(message["id"])


@asynccontextmanager
async def answering(*pieces: bytes) -> AsyncIterator[Echo]:
    """A client of a server that answers each request with these pieces; after the last it hangs up."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await request(reader)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)

    async with served_by(handle) as echo:
        yield echo


async def test_the_own_answer_ends_a_call_also_when_it_comes_in_pieces() -> None:
    reply = plain(answer(1_000_001))
    async with answering(reply[:30], reply[30:50], reply[50:]) as echo:
        await echo()


async def test_an_event_stream_ends_a_call_with_its_last_chunk() -> None:
    event = b"event: message\ndata: " + answer(1_000_001) + b"\n\n"
    async with answering(STREAM_HEAD, b"%x\r\n%b\r\n" % (len(event), event), b"0\r\n\r\n") as echo:
        await echo()


@pytest.mark.parametrize("body", [answer(1_000_002), answer(10_000_010), answer(1_000_001, "other")])
async def test_the_answer_to_something_else_is_an_error(body: bytes) -> None:
    async with answering(plain(body)) as echo:
        with pytest.raises(AssertionError, match="something else"):
            await echo()


async def test_a_connection_that_ends_within_a_call_is_an_error() -> None:
    async with answering(plain(answer(1_000_001))[:-1]) as echo:
        with pytest.raises(ConnectionError):
            await echo()


async def test_after_a_connection_that_ended_between_two_calls_there_is_another() -> None:
    async with answering(plain(answer(1_000_001))) as echo:
        await echo()

        async def closed() -> bool:
            return echo.transport.is_closing()

        await eventually(closed)
        with pytest.raises(AssertionError, match="something else"):  # the server says the same once more
            await echo()


@asynccontextmanager
async def numbering(number: Callable[[int], int]) -> AsyncIterator[Echo]:
    """A client of a server that answers each call under a number made of its own."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(plain(answer(number(await request(reader)))))

    async with served_by(handle) as echo:
        yield echo


async def test_calls_are_repeated_until_the_deadline_and_counted() -> None:
    seen: list[int] = []

    def own(number: int) -> int:
        seen.append(number)
        return number

    async with numbering(own) as echo:
        assert await echo.repeat(0) == 0
        made = await echo.repeat(time.perf_counter() + 0.2)
        assert made > 1
        await echo()
    assert seen == list(range(1_000_001, 1_000_002 + made))


async def test_a_wrong_answer_ends_the_repetition_also_when_it_looks_as_the_one_before() -> None:
    async with numbering(lambda number: 1_000_009 if number == 1_000_003 else number) as echo:
        with pytest.raises(AssertionError, match="something else"):
            await echo.repeat(time.perf_counter() + 60)
        assert echo.number == 1_000_003


async def test_the_same_head_before_a_shorter_body_is_not_taken_for_a_whole_reply() -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number in (1_000_001, 1_000_002):
            assert await request(reader) == number
            body = answer(number)
            reply = plain(body if number == 1_000_001 else body + b" ")
            writer.write(reply[: len(plain(body))])
            await writer.drain()
        await reader.read()

    async with served_by(handle) as echo:
        await echo()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(echo(), 0.2)
