"""What one client may do, in all kinds of clients; others are not touched by it."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from mcp_sidecar.core.bucket import Limits
from relaykit.client import Client, body
from relaykit.pod import TOKEN, Pod
from relaykit.stateless import Caller

SLOW = Limits(per_minute=1, burst=3)


async def limited(make_pod: Any, limits: Limits, mode: str = "answer", **settings: Any) -> Pod:
    pod: Pod = await make_pod(mode, limits=limits, **settings)
    await pod.until("Connected")
    return pod


async def ping(client: Client) -> httpx.Response:
    client.sent += 1
    return await client.post(body("ping", client.sent))


def refused(reply: httpx.Response, reason: str) -> int:
    """The seconds after which to come again; header, error and message say the same."""
    assert reply.status_code == 429
    error = reply.json()["error"]
    seconds = int(reply.headers["retry-after"])
    assert error["data"] == {"reason": reason, "retry_after_seconds": seconds}
    assert f"Try again in {seconds} s" in error["message"]
    assert reply.headers["content-type"] == "application/json"
    return seconds


async def test_a_session_above_its_rate_gets_429_and_goes_on_and_another_session_is_free(
    make_pod: Any,
) -> None:
    pod = await limited(make_pod, SLOW)
    client, other = await pod.connected(), await pod.connected()
    assert [(await ping(client)).status_code for _ in range(3)] == [200, 200, 200]
    reply = await ping(client)
    assert reply.json()["id"] == client.sent
    assert 0 < refused(reply, "rate") <= 60
    assert (await ping(other)).status_code == 200
    await client.notify("notifications/roots/list_changed")
    assert (await client.delete()).status_code == 200
    metrics = (await pod.admin("GET", "/metrics")).text
    assert 'mcp_relay_requests_refused_total{reason="rate"} 1.0' in metrics


async def test_new_sessions_are_no_way_around_the_rate(make_pod: Any) -> None:
    pod = await limited(make_pod, SLOW)
    for _ in range(3):
        await pod.connected()
    params = {"protocolVersion": "2025-11-25", "capabilities": {}}
    refused(await pod.client().post(body("initialize", 0, **params)), "rate")


@pytest.mark.parametrize("mode", ["answer", "stateless"])
async def test_clients_without_a_session_are_told_apart_by_their_address(make_pod: Any, mode: str) -> None:
    pod = await limited(make_pod, SLOW, mode)
    callers = [Caller(pod) for _ in range(4)]
    replies = [await caller.post(caller.message("tools/list")) for caller in callers]
    assert [reply.status_code for reply in replies] == [200, 200, 200, 429]
    refused(replies[-1], "rate")


@pytest.mark.parametrize("mode", ["Shared", "PerClient"])
async def test_a_call_has_its_place_until_it_is_answered_whoever_went_away(make_pod: Any, mode: str) -> None:
    pod = await limited(make_pod, Limits(concurrent=2), call_timeout=60.0, session_mode=mode)
    client, other = await pod.connected(), await pod.connected()
    calls = [asyncio.create_task(client.call("sleep", n, seconds=60)) for n in (1, 2)]
    await pod.in_flight(2)
    assert refused(await ping(client), "concurrency") == 1
    assert (await ping(other)).status_code == 200
    calls[0].cancel()  # a client with a session that goes away does not cancel
    await asyncio.gather(calls[0], return_exceptions=True)
    refused(await ping(client), "concurrency")
    await client.notify("notifications/cancelled", requestId=2)
    assert (await calls[1])["error"]["message"] == "Request cancelled"
    assert (await ping(client)).status_code == 200


async def test_a_stateless_client_that_closes_its_connection_frees_its_place(make_pod: Any) -> None:
    pod = await limited(make_pod, Limits(concurrent=1), "stateless")
    caller = Caller(pod)
    async with caller.stream(caller.message("tools/call", name="sleep", arguments={"seconds": 60})):
        await pod.in_flight(1)
        refused(await caller.post(caller.message("tools/list")), "concurrency")
    await pod.in_flight(0)
    assert (await caller.post(caller.message("tools/list"))).status_code == 200


async def test_a_call_that_is_refused_or_that_the_end_of_the_server_ends_frees_its_place(
    make_pod: Any,
) -> None:
    pod = await limited(make_pod, Limits(concurrent=1), tools_deny=("stats",))
    client = await pod.connected()
    assert (await client.call("stats"))["error"]["code"] == -32602
    assert (await client.request("no/such/method"))["error"]["code"] == -32601
    assert "result" in await client.call("echo")
    assert "error" in await client.call("die")
    reply = await ping(client)
    assert reply.status_code != 429


async def test_the_older_transport_is_limited_before_it_accepts(make_pod: Any) -> None:
    pod = await limited(make_pod, SLOW, http_sse=True)
    root = pod.url.removesuffix("/mcp")
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with (
        httpx.AsyncClient(headers=headers, timeout=10, trust_env=False) as http,
        http.stream("GET", f"{root}/sse") as stream,
    ):
        lines, place = stream.aiter_lines(), ""
        while not place.startswith("data: "):
            place = await anext(lines)
        early = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        replies = [await http.post(root + place[6:], json=early) for _ in range(4)]
    assert [reply.status_code for reply in replies] == [202, 202, 202, 429]
    refused(replies[-1], "rate")


async def test_without_limits_nobody_is_refused_and_nothing_is_kept(make_pod: Any) -> None:
    pod = await make_pod()
    await pod.until("Connected")
    assert pod.service is not None
    assert pod.service.relay.guard is None
    client = await pod.connected()
    replies = await asyncio.gather(*(client.post(body("ping", n)) for n in range(300)))
    assert {reply.status_code for reply in replies} == {200}
    assert json.loads(replies[0].content)["result"] == {}


@pytest.mark.parametrize("mode", ["answer", "stateless"])
async def test_a_request_that_met_a_defect_holds_no_place(
    make_pod: Any, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = await limited(make_pod, Limits(concurrent=1), mode)
    caller = Caller(pod)

    def defect(*_: Any) -> None:
        raise ZeroDivisionError("never thought of")

    with monkeypatch.context() as patched:
        patched.setattr("mcp_sidecar.session.relay.Relay.traced", defect)
        headers = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
        for _ in range(2):
            with pytest.raises(httpx.RemoteProtocolError):
                await caller.post(caller.message("tools/list"), **headers)
    assert (await caller.post(caller.message("tools/list"))).status_code == 200


async def test_a_frame_with_two_readings_is_refused_and_reaches_nobody(make_pod: Any) -> None:
    pod = await make_pod()
    client = await pod.connected()
    before = (await client.text("stats"))["id"]
    for text in (
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"},"ID":%d}' % (before + 1),
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","Method":"tools/call","ID":7,"params":{}}',
    ):
        reply = await client.post(text)
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, -32600)
        assert "ambiguous" in reply.json()["error"]["message"]
    assert (await client.text("stats"))["id"] == before + 1
