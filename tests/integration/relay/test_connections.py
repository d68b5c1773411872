"""The HTTP layer on real sockets, in front of a whole relay."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from relaykit.client import Client, body
from relaykit.pod import Pod
from relaykit.waiting import eventually, stopwatch

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@contextlib.asynccontextmanager
async def connection(pod: Pod) -> AsyncIterator[Stream]:
    reader, writer = await asyncio.open_connection("127.0.0.1", pod.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def post(client: Client, message: Any, *lines: str, length: int | None = None) -> bytes:
    data = json.dumps(message).encode() if message else b""
    fields = [f"{name}: {value}" for name, value in client.headers().items()]
    size = len(data) if length is None else length
    head = ["POST /mcp HTTP/1.1", "host: localhost", f"content-length: {size}", *fields, *lines, "", ""]
    return "\r\n".join(head).encode() + data


def call(tool: str, number: int, **arguments: Any) -> Any:
    return body("tools/call", number, name=tool, arguments=arguments)


async def reply(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    async with asyncio.timeout(5):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        status = int(head.split(" ")[1])
        sizes = [line[16:] for line in head.split("\r\n") if line.startswith("content-length: ")]
        return status, await reader.readexactly(int(sizes[0])) if sizes else b""


async def ended(reader: asyncio.StreamReader) -> bool:
    async with asyncio.timeout(5):
        return await reader.read() == b""


async def test_pipelined_calls_are_answered_in_order_on_one_connection(pod: Pod) -> None:
    client = await pod.connected()
    async with connection(pod) as (reader, writer):
        calls = [call("sleep", 1, seconds=0.2), *[call("echo", n, text=str(n)) for n in range(2, 60)]]
        writer.write(b"".join(post(client, each) for each in calls))
        numbers = [json.loads((await reply(reader))[1])["id"] for _ in calls]
    assert numbers == list(range(1, 60))


async def test_a_call_cut_into_single_bytes_is_answered(pod: Pod) -> None:
    client = await pod.connected()
    async with connection(pod) as (reader, writer):
        for _ in range(2):
            for byte in post(client, call("echo", 1, text="x")):
                writer.write(bytes([byte]))
                await writer.drain()
            assert (await reply(reader))[0] == 200


async def test_a_connection_that_was_authorised_once_asks_for_the_token_every_time(pod: Pod) -> None:
    client = await pod.connected()
    good = post(client, call("echo", 1, text="x"))
    async with connection(pod) as (reader, writer):
        for data, status in [
            (good, 200),
            (good.replace(b"client-token", b"client-t0ken"), 401),
            (good, 200),
        ] * 3:
            writer.write(data)
            assert (await reply(reader))[0] == status


async def test_a_stranger_is_refused_before_his_body_is_taken(pod: Pod) -> None:
    async with connection(pod) as (reader, writer):
        writer.write(post(pod.client(token="wrong"), None, length=10_000_000))
        assert (await reply(reader))[0] == 401
        assert await ended(reader)


async def test_a_client_that_sends_on_while_it_is_refused_gets_the_refusal(make_pod: Any) -> None:
    pod = await make_pod(max_message_bytes=100_000)
    client = await pod.connected()
    async with connection(pod) as (reader, writer):
        writer.write(post(client, None, length=5_000_000))
        for _ in range(50):
            writer.write(b"x" * 100_000)
            await writer.drain()
        assert (await reply(reader))[0] == 413
        assert await ended(reader)


async def test_a_client_that_waits_to_be_told_sends_its_body_then(pod: Pod) -> None:
    client = await pod.connected()
    head, data = post(client, call("echo", 1, text="x"), "expect: 100-continue").split(b"\r\n\r\n")
    async with connection(pod) as (reader, writer):
        writer.write(head + b"\r\n\r\n")
        assert (await reply(reader))[0] == 100
        writer.write(data)
        assert (await reply(reader))[0] == 200


async def test_clients_that_say_nothing_or_not_enough_are_sent_away(
    make_pod: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_sidecar.web.server.CHECK_SECONDS", 0.05)
    monkeypatch.setattr("mcp_sidecar.web.connection.KEEP_ALIVE_SECONDS", 0.3)
    monkeypatch.setattr("mcp_sidecar.web.connection.FIRST_SECONDS", 0.3)
    monkeypatch.setattr("mcp_sidecar.web.intake.HEAD_SECONDS", 0.3)
    monkeypatch.setattr("mcp_sidecar.web.intake.BODY_SECONDS", 0.3)
    pod = await make_pod()
    client = await pod.connected()
    async with connection(pod) as silent, connection(pod) as slow, connection(pod) as short:
        slow[1].write(b"POST /mcp HTTP/1.1\r\nhost: loc")
        short[1].write(post(client, call("echo", 1, text="x"))[:-1])
        assert await ended(silent[0])
        for reader, _ in (slow, short):
            assert (await reply(reader))[0] == 408
            assert await ended(reader)
    patient = await client.call("sleep", seconds=1)
    assert patient["result"]


async def answered(pod: Pod, tool: str) -> float:
    """Calls of a tool that had a result."""
    text = (await pod.admin("GET", "/metrics")).text
    labels = f'{{method="tools/call",outcome="ok",tool="{tool}"}}'
    found = re.search(rf"^mcp_relay_calls_total{re.escape(labels)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0


async def test_a_client_that_reads_no_replies_is_not_read_from_and_hurts_nobody(pod: Pod) -> None:
    async def some() -> bool:
        return await answered(pod, "big") > 0

    greedy, other = await pod.connected(), await pod.connected()
    data = post(greedy, call("big", 1, n=1_000_000)) * 100
    async with connection(pod) as (_, writer):
        writer.write(data * 50)
        for _ in range(20):
            assert (await other.call("echo", text="x"))["result"]
        await eventually(some)
        assert await answered(pod, "echo") == 20
        assert await answered(pod, "big") < 100
        writer.transport.abort()
    assert (await other.call("echo", text="x"))["result"]


async def test_methods_that_mean_nothing_here_are_refused(pod: Pod) -> None:
    client = await pod.connected()
    for method in ("HEAD", "PUT", "PATCH", "OPTIONS", "PROPFIND"):
        refused = await client.http.request(method, client.url, headers=client.headers())
        assert refused.status_code == 405
        assert refused.headers["allow"] == "GET, POST, DELETE"
        assert bool(refused.content) is (method != "HEAD")
    head = await pod.admin("HEAD", "/healthz")
    assert (head.status_code, head.content) == (200, b"")


async def test_malformed_requests_are_counted_and_nobody_else_is_hurt(pod: Pod) -> None:
    client = await pod.connected()
    for data in (b"GET / HTTP/1.1\nhost: a\n\n", post(client, None, "transfer-encoding: chunked")):
        async with connection(pod) as (reader, writer):
            writer.write(data)
            assert (await reply(reader))[0] == 400
            assert await ended(reader)
    assert (await client.call("echo", text="x"))["result"]
    text = (await pod.admin("GET", "/metrics")).text
    assert 'mcp_relay_requests_refused_total{reason="malformed"} 2.0' in text


async def test_the_reply_to_a_call_under_way_arrives_when_the_relay_stops(pod: Pod) -> None:
    client = await pod.connected()
    async with connection(pod) as (reader, writer):
        writer.write(post(client, call("hold", 1)))
        release = await pod.holding()
        stopping = asyncio.create_task(pod.stop_relay())
        await pod.until("Terminating")
        release()
        status, data = await reply(reader)
        assert (status, "result" in json.loads(data)) == (200, True)
        assert await ended(reader)
        await stopping


async def test_an_idle_connection_does_not_hold_up_the_end(pod: Pod) -> None:
    async with connection(pod) as (reader, _), connection(pod) as (other, writer):
        writer.write(b"POST /mcp HTTP/1.1\r\nhost: loc")
        async with stopwatch() as passed:
            await pod.stop_relay()
            assert passed() < 2
        assert await ended(reader)
        assert await ended(other)


async def test_large_calls_at_once_are_served_or_told_to_come_again(make_pod: Any) -> None:
    pod = await make_pod(max_message_bytes=1_000_000)
    clients = [await pod.connected() for _ in range(12)]
    arguments = {"text": "hi", "pad": "x" * 900_000}
    large = body("tools/call", 1, name="echo", arguments=arguments)
    replies = await asyncio.gather(*(client.post(large) for client in clients))
    served = [reply for reply in replies if reply.status_code == 200]
    refused = [reply for reply in replies if reply.status_code == 503]
    assert len(served) + len(refused) == 12
    assert served
    assert all("result" in reply.json() for reply in served)
    assert all(reply.headers["retry-after"] == "1" for reply in refused)
    assert "result" in (await clients[-1].post(large)).json()


async def test_large_answers_that_nobody_takes_are_bounded_and_the_others_go_on(make_pod: Any) -> None:
    pod = await make_pod(max_message_bytes=12_000_000)
    client = await pod.connected()
    writers = []
    for _ in range(6):
        other = await pod.connected()
        call = json.dumps(body("tools/call", 1, name="big", arguments={"n": 11_000_000})).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", pod.port, limit=1)
        head = [f"{name}: {value}" for name, value in other.headers().items()]
        lines = ["POST /mcp HTTP/1.1", "host: localhost", f"content-length: {len(call)}", *head, "", ""]
        writer.write("\r\n".join(lines).encode() + call)
        writers.append((reader, writer))

    async def dropped() -> bool:
        text = (await pod.admin("GET", "/metrics")).text
        return 'outcome="busy"' in text

    await eventually(dropped, 10)
    assert (await client.call("echo", text="x"))["result"]
    for _, writer in writers:
        writer.close()

    async def room_again() -> bool:
        return "result" in await client.call("big", n=11_000_000)

    await eventually(room_again, 10)
