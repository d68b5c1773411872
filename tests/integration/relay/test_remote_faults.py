"""Remote servers that answer what no server should: nobody else suffers, and no call runs twice."""

import asyncio
import gzip
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from mcp_sidecar.remote import exchange, stream
from mcp_sidecar.remote.client import Client
from relaykit.client import body
from relaykit.remote import listed, pod_for, target, told
from relaykit.unruly import Exchange, Json, MakeRelay, Unruly, came, never, ready

# Calls.


async def test_a_call_whose_stream_is_not_to_be_had_again_is_not_sent_twice(
    unruly: Unruly, relay: MakeRelay
) -> None:
    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call":
            return False
        unruly.deaf()
        http.events(b"retry: 500\nid: 1\ndata:\n\n")  # until the socket is closed for good
        return True

    unruly.post = post
    client = await (await ready(relay)).connected()
    answer = await client.call("t")
    assert answer["error"]["data"]["outcome"] == "unknown"
    unruly.stop()
    unruly.start()
    unruly.post = lambda *_: False
    assert "result" in await client.call("other")
    assert unruly.asked == ["t", "other"]


async def test_a_tool_s_own_error_about_a_session_is_its_answer(unruly: Unruly, relay: MakeRelay) -> None:
    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call" or message["params"]["name"] != "browser":
            return False
        http.error(message, 200, -32000, "Browser session 17 not found")
        return True

    unruly.post = post
    pod = await ready(relay)
    first, second = await pod.connected(), await pod.connected()
    for _ in range(3):
        assert (await first.call("browser"))["error"]["message"] == "Browser session 17 not found"
        assert "result" in await second.call("t")
    assert unruly.asked == ["browser", "t"] * 3
    await came(unruly, "ping", 1)
    assert unruly.seen.count("initialize") == 1


async def test_a_refusal_that_a_new_session_repeats_is_not_laid_to_the_session(
    unruly: Unruly, relay: MakeRelay
) -> None:
    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call" or message["params"]["name"] != "browser":
            return False
        http.error(message, 404, -32000, "Session not found")
        return True

    unruly.post = post
    client = await (await ready(relay)).connected()
    assert (await client.call("browser"))["error"]["message"] == "Session not found"
    assert "result" in await client.call("t")
    assert unruly.asked == ["browser", "browser", "t"]
    assert unruly.seen.count("initialize") == 2


async def test_a_tool_that_is_refused_by_401_holds_up_nobody_else(unruly: Unruly, relay: MakeRelay) -> None:
    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call" or message["params"]["name"] != "private":
            return False
        http.reply(401, {"error": "not yours"})
        return True

    unruly.post = post
    pod = await ready(relay, where={"slow": 300.0})
    first, second = await pod.connected(), await pod.connected()
    assert "not yours" in (await first.call("private"))["error"]["message"]
    await came(unruly, "ping", 1)
    assert "result" in await second.call("t")
    status = await pod.status()
    assert (status.state, status.error) == ("Connected", None)


async def test_headers_that_the_server_refuses_from_now_on_are_told(unruly: Unruly, relay: MakeRelay) -> None:
    pod = await ready(relay)
    await listed(pod, "t")

    def post(http: Exchange, _message: Json) -> bool:
        http.reply(401)
        return True

    unruly.post = post
    assert "401" in (await (await pod.connected()).call("t"))["error"]["message"]
    await told(pod, "spec.remote.headersFrom")


async def test_an_answer_to_a_question_of_a_lost_session_is_not_given_to_the_next(
    unruly: Unruly, relay: MakeRelay
) -> None:
    asking = threading.Event()
    lost: list[str | None] = []
    answers: list[str | None] = []
    question = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
    asks = {"jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": question}

    def post(http: Exchange, message: Json) -> bool:
        if "method" not in message:
            answers.append(http.sid)
        if lost and http.sid in lost:
            http.error(message, 404, -32001, "Session not found")
            return True
        if message.get("method") != "tools/call":
            return False
        http.events(b"data: %b\n\n" % json.dumps(asks).encode())
        asking.wait(20)
        return True

    unruly.post = post
    pod = await ready(relay, client_capabilities=("elicitation",))
    client = await pod.connected(capabilities={"elicitation": {}})
    call = body("tools/call", 1, name="t", arguments={})
    async with client.http.stream("POST", client.url, json=call, headers=client.headers()) as response:
        async for line in response.aiter_lines():
            if "elicitation/create" in line:
                number = json.loads(line.removeprefix("data: "))["id"]
                break
        lost.append("s1")
        answer = {"jsonrpc": "2.0", "id": number, "result": {"action": "decline"}}
        await client.http.post(client.url, json=answer, headers=client.headers())
        await came(unruly, "initialize", 2)
        await pod.until("Connected")
        asking.set()
    assert "result" in await client.request("tools/list")
    assert answers == ["s1"]


async def test_the_first_answer_counts(unruly: Unruly, relay: MakeRelay) -> None:
    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call":
            return False
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        error = {"code": -32001, "message": "Session not found"}
        both = (answer | {"result": {"content": []}}, answer | {"error": error})
        http.events(b"".join(b"data: %b\n\n" % json.dumps(one).encode() for one in both))
        return True

    unruly.post = post
    client = await (await ready(relay)).connected()
    assert "result" in await client.call("t")
    unruly.post = never
    assert "result" in await client.call("other")
    assert unruly.asked == ["t", "other"]


async def test_a_retry_after_of_no_seconds_is_no_wish_for_a_storm(unruly: Unruly, relay: MakeRelay) -> None:
    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call" or len(unruly.asked) > 2:
            return False
        times.append(time.monotonic())
        http.reply(429, retry_after="0")
        return True

    times: list[float] = []
    unruly.post = post
    client = await (await ready(relay)).connected()
    assert "result" in await client.call("t")
    assert unruly.asked == ["t"] * 3
    assert times[1] - times[0] > 0.4


async def test_a_redirect_that_cannot_be_read_is_told(unruly: Unruly, relay: MakeRelay) -> None:
    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call":
            return False
        http.reply(307, location="http://[")
        return True

    unruly.post = post
    client = await (await ready(relay)).connected()
    assert "redirects to nowhere" in (await client.call("t"))["error"]["message"]


async def test_a_refusal_whose_body_does_not_come_is_one(
    unruly: Unruly, relay: MakeRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "ERROR_SECONDS", 0.2)
    over = threading.Event()

    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call":
            return False
        http.reply(400, b"no", content_length="1000")
        http.wfile.flush()
        over.wait(20)
        return True

    unruly.post = post
    client = await (await ready(relay)).connected()
    assert "HTTP 400" in (await client.call("t"))["error"]["message"]
    assert not over.is_set()
    over.set()


@pytest.mark.parametrize(("status", "text"), [(200, "encoded ('gzip')"), (400, "did not answer: HTTP 400")])
async def test_an_answer_that_is_compressed_unasked_is_told(
    unruly: Unruly, relay: MakeRelay, status: int, text: str
) -> None:
    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call":
            return False
        http.reply(status, gzip.compress(b" " * 10_000_000), content_encoding="gzip")
        return True

    unruly.post = post
    client = await (await ready(relay)).connected()
    message = (await client.call("t"))["error"]["message"]
    assert text in message
    assert message.isprintable()


async def test_an_answer_that_goes_over_to_another_protocol_is_told(unruly: Unruly, relay: MakeRelay) -> None:
    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call":
            return False
        http.reply(101, upgrade="h2c", connection="upgrade")
        return True

    unruly.post = post
    client = await (await ready(relay)).connected()
    assert "another protocol" in (await client.call("t"))["error"]["message"]


async def test_a_connection_that_is_closed_unannounced_ends_no_session(
    unruly: Unruly, relay: MakeRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a kept connection and the next `ping` pass each other."""
    monkeypatch.setattr(stream, "PING_SECONDS", 0.05)

    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "ping":
            return False
        data = b'{"jsonrpc":"2.0","id":%d,"result":{}}' % message["id"]
        http.close_connection = False
        http.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(data), data))
        http.wfile.flush()
        http.connection.recv(1, socket.MSG_PEEK)  # the next request has come: nothing of it is read
        http.close_connection = True
        return True

    unruly.post = post
    pod = await ready(relay)
    await came(unruly, "ping", 5)
    status = await pod.status()
    assert (status.state, status.error) == ("Connected", None)
    assert unruly.seen.count("tools/list") == 1


# What would have ended the relay.


async def test_a_retry_after_beyond_every_calendar_says_nothing(unruly: Unruly, relay: MakeRelay) -> None:
    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "initialize" or unruly.seen.count("initialize") > 2:
            return False
        http.reply(503, b"busy", retry_after="Mon, 01 Jan 99999999999999999999 00:00:00 GMT")
        return True

    unruly.post = post
    await ready(relay)


@pytest.mark.parametrize("host", ["a..b", "a" * 70 + ".example.com"])
async def test_a_host_that_no_name_server_takes_is_told(tmp_path: Path, host: str) -> None:
    pod = pod_for(tmp_path, target(f"http://{host}/mcp"))
    await pod.relay()
    try:
        await told(pod, "spec.remote.url")
    finally:
        await pod.stop()


async def test_a_defect_of_the_link_is_told_and_got_over(
    unruly: Unruly, relay: MakeRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(Client, "request", broken)
        pod = await relay()
        await told(pod, "a defect of the relay (ZeroDivisionError)")
    await pod.until("Connected")
    assert "result" in await (await pod.connected()).call("t")


async def test_a_head_without_end_is_given_up(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nX-A: ")
        try:
            while True:
                writer.write(b"a" * 10_000)
                await writer.drain()
        except OSError:
            ended.set()

    ended = asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    pod = pod_for(tmp_path, target(f"http://127.0.0.1:{port}/mcp"))
    await pod.relay()
    try:
        await told(pod, "head is too large")
        await asyncio.wait_for(ended.wait(), 10)
    finally:
        await pod.stop()
        server.close()


async def test_a_session_whose_handshake_fails_is_ended(unruly: Unruly, relay: MakeRelay) -> None:
    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "notifications/initialized" or "DELETE" in unruly.seen:
            return False
        http.reply(500)
        return True

    unruly.post = post
    await relay()
    await came(unruly, "tools/list", 1)
    assert unruly.seen.count("initialize") == 2
    assert unruly.seen.count("DELETE") == 1
