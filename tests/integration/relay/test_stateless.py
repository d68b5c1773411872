"""Clients without sessions at a server without: under other ids, and else as it came."""

import asyncio
import json
from typing import Any

import pytest

from relaykit.client import body
from relaykit.pod import Pod
from relaykit.stateless import PREFIX, SUBSCRIPTION, Caller
from relaykit.waiting import eventually


@pytest.fixture
async def pod(make_pod: Any) -> Pod:
    """A pod whose server has no sessions, connected."""
    made: Pod = await make_pod("stateless", protocol="Modern")
    await made.until("Connected")
    return made


async def received(pod: Pod, method: str) -> list[dict[str, Any]]:
    stats = await Caller(pod).text("stats")
    return [message for message in stats["received"] if message["method"] == method]


@pytest.mark.parametrize(
    ("mode", "protocol", "asked"),
    [
        ("stateless", "Modern", ["server/discover"]),
        ("stateless", "Auto", ["initialize", "server/discover"]),
        ("stateless:initialize-params", "Auto", ["initialize", "server/discover"]),
    ],
)
async def test_the_kind_of_server_is_found_out_and_stands_in_the_status(
    make_pod: Any, mode: str, protocol: str, asked: list[str]
) -> None:
    pod = await make_pod(mode, protocol=protocol)
    status = await pod.settled()
    assert status.session.protocol_version == "2026-07-28"
    assert status.session.server_info == {"name": "stateless", "version": "1"}
    assert status.tool_count > 0
    stats = await Caller(pod).text("stats")
    assert [message["method"] for message in stats["received"]][: len(asked)] == asked
    assert "notifications/initialized" not in [message["method"] for message in stats["received"]]


@pytest.mark.parametrize(
    ("mode", "protocol", "words"),
    [
        ("stateless", "Legacy", "The server refused initialize: no such method"),
        ("stateless:refuse", "Modern", "The server speaks protocol revisions 2099-01-01"),
        ("answer", "Modern", "The server refused server/discover: no such method"),
    ],
)
async def test_a_server_of_the_other_kind_is_refused_with_the_reason(
    make_pod: Any, mode: str, protocol: str, words: str
) -> None:
    pod = await make_pod(mode, protocol=protocol)
    status = await pod.until("Refused")
    assert words in status.error.message
    reply = await Caller(pod).post(Caller(pod).message("tools/list"))
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, -31000)
    assert int(reply.headers["retry-after"]) > 0


async def test_a_request_passes_as_it_is_but_for_its_id_and_token(pod: Pod) -> None:
    caller = Caller(pod, {"sampling": {"tools": {}}})
    message = caller.message("tools/call", "7", name="progress", _meta={"progressToken": "tok", "x/y": [1]})
    async with caller.stream(message) as stream:
        steps = [await stream.next() for _ in range(2)]
        answer = await stream.next()
    assert [(step["params"]["progressToken"], step["params"]["progress"]) for step in steps] == [
        ("tok", 0),
        ("tok", 1),
    ]
    assert (answer["id"], answer["result"]["resultType"]) == ("7", "complete")
    sent = (await received(pod, "tools/call"))[-2]["params"]
    token = sent["_meta"].pop("progressToken")
    assert token == json.loads(answer["result"]["content"][0]["text"])
    assert message["params"]["_meta"].pop("progressToken") == "tok"
    assert sent == message["params"]


async def test_what_a_server_answers_is_not_touched(pod: Pod) -> None:
    caller = Caller(pod)
    reply = await caller.post(caller.message("tools/call", 5, name="odd"))
    assert reply.content == (
        b'{"jsonrpc":"2.0","id":5,"result":{"content":[{"type":"hologram"}],"x":1.0E2,"n":null,'
        b'"resultType":"complete","s":"\\ud800"}}'
    )
    discovered = await caller.request("server/discover")
    assert discovered["result"]["instructions"] == "be kind"
    assert (await caller.request("tools/list"))["result"]["ttlMs"] == 1000
    assert (await caller.request("vendor/echo", big=2**70))["result"]["big"] == 2**70
    assert len(await caller.text("big", n=3_000_000)) == 3_000_000


@pytest.mark.parametrize(("code", "status"), [(-32601, 404), (-32602, 400), (-32021, 400), (-31999, 200)])
async def test_an_error_of_the_server_gets_its_http_status(pod: Pod, code: int, status: int) -> None:
    caller = Caller(pod)
    reply = await caller.post(caller.message("tools/call", 5, name="fail", arguments={"code": code}))
    assert reply.status_code == status
    assert reply.json() == {
        "jsonrpc": "2.0",
        "id": 5,
        "error": {"code": code, "message": "no", "data": {"why": None}},
    }


async def test_what_the_revision_lacks_is_not_passed_on(pod: Pod) -> None:
    caller = Caller(pod)
    for method in ("initialize", "ping", "logging/setLevel", "nonsense"):
        reply = await caller.post(caller.message(method, 9))
        assert (reply.status_code, reply.json()["error"]["code"], reply.json()["id"]) == (404, -32601, 9)
        assert await received(pod, method) == []


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"mcp_method": None}, 400, -32020),
        ({"mcp_name": "other"}, 400, -32020),
        ({"mcp_protocol_version": None}, 400, -32020),
        ({"mcp_protocol_version": "2025-11-25"}, 400, -32020),
        ({"mcp_protocol_version": "2099-01-01"}, 400, -32020),
        ({"mcp_param_region": "moon"}, 400, -32020),
        ({"accept": "text/plain"}, 406, -32000),
        ({"authorization": None}, 401, None),
        ({"mcp_session_id": "whatever"}, 200, None),
    ],
)
async def test_headers_must_say_what_the_body_says(
    pod: Pod, headers: dict[str, str | None], status: int, code: int | None
) -> None:
    caller = Caller(pod)
    reply = await caller.post(caller.message("tools/call", 3, name="echo", arguments={}), **headers)
    assert reply.status_code == status
    error = reply.json().get("error")
    assert (error["code"] if isinstance(error, dict) else None) == code


async def test_an_argument_that_is_to_be_repeated_must_be(pod: Pod) -> None:
    caller = Caller(pod)
    message = caller.message("tools/call", 3, name="echo", arguments={"region": "moon"})
    missing = await caller.post(message)
    assert (missing.status_code, missing.json()["error"]["code"]) == (400, -32020)
    assert (await caller.post(message, mcp_param_region="=?base64?bW9vbg==?=")).status_code == 200


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"{", 400, -32700),
        (b"[]", 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', 400, -32602),
        (b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}', 202, None),
    ],
)
async def test_what_is_no_request_of_the_revision_gets_its_status(
    pod: Pod, content: bytes, status: int, code: int | None
) -> None:
    client = pod.client()
    reply = await client.post(content, mcp_protocol_version="2026-07-28", mcp_method="tools/list")
    assert reply.status_code == status
    assert (reply.json()["error"]["code"] if reply.content else None) == code


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_the_revision_has_neither_streams_nor_sessions_of_their_own(pod: Pod, method: str) -> None:
    client = pod.client()
    headers = client.headers(mcp_protocol_version="2026-07-28")
    assert (await client.http.request(method, pod.url, headers=headers)).status_code == 405


async def test_to_close_the_connection_cancels_the_call(pod: Pod) -> None:
    caller = Caller(pod)
    call = asyncio.create_task(caller.call("sleep", seconds=30))
    await pod.in_flight(1)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    await pod.in_flight(0)
    (told,) = await received(pod, "notifications/cancelled")
    (call_sent,) = [m for m in await received(pod, "tools/call") if m["params"]["name"] == "sleep"]
    assert told["params"]["requestId"] == call_sent["id"]


async def test_a_call_that_takes_too_long_ends_with_a_code_of_the_relays_own(make_pod: Any) -> None:
    pod = await make_pod("stateless", protocol="Modern", call_timeout=1.0)
    await pod.until("Connected")
    error = (await Caller(pod).call("sleep", seconds=30))["error"]
    text = "MCP tool 'sleep' on server 'demo' timed out after 1 seconds"
    assert (error["code"], error["message"]) == (-31001, text)
    assert len(await received(pod, "notifications/cancelled")) == 1


async def test_log_messages_go_to_the_only_call_that_asked_for_them(pod: Pod) -> None:
    silent, loud = Caller(pod), Caller(pod, level="warning")
    await silent.call("log", level="error")
    assert silent.notes == []
    await loud.call("log", level="info")
    assert loud.notes == []
    await loud.call("log", level="error")
    assert [note["params"]["data"] for note in loud.notes] == ["log"]
    other = asyncio.create_task(Caller(pod, level="debug").call("sleep", seconds=30))
    await pod.in_flight(1)
    await loud.call("log", level="error")
    assert len(loud.notes) == 1
    other.cancel()
    await asyncio.gather(other, return_exceptions=True)


async def test_each_subscription_hears_what_it_asked_for_under_its_own_id(pod: Pod) -> None:
    first, second = Caller(pod), Caller(pod)
    tools = first.message("subscriptions/listen", 1, notifications={"toolsListChanged": True})
    resource = second.message(
        "subscriptions/listen", "1", notifications={"resourceSubscriptions": ["file://a"]}
    )
    async with first.stream(tools) as heard, second.stream(resource) as seen:
        for stream, number in ((heard, 1), (seen, "1")):
            acknowledged = await stream.next()
            assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
            assert acknowledged["params"]["_meta"] == {SUBSCRIPTION: number}
        await Caller(pod).call("change")
        await Caller(pod).call("change", uri="file://a")
        told = await heard.next()
        assert (told["method"], told["params"]["_meta"]) == (
            "notifications/tools/list_changed",
            {SUBSCRIPTION: 1},
        )
        told = await seen.next()
        assert (told["method"], told["params"]) == (
            "notifications/resources/updated",
            {"_meta": {SUBSCRIPTION: "1"}, "uri": "file://a"},
        )
        assert (heard.waiting(), seen.waiting()) == (0, 0)


async def listening(pod: Pod) -> list[dict[str, Any]]:
    return list((await Caller(pod).text("stats"))["listening"])


async def test_a_subscription_ends_with_its_connection(pod: Pod) -> None:
    caller = Caller(pod)
    asked = {"resourceSubscriptions": ["file://mine"]}
    async with caller.stream(caller.message("subscriptions/listen", notifications=asked)) as stream:
        await stream.next()
        assert asked in await listening(pod)

    async def forgotten() -> bool:
        return asked not in await listening(pod)

    await eventually(forgotten)


@pytest.mark.parametrize("how", ["answer", "cancel"])
async def test_a_subscription_that_the_server_ends_ends_in_good_order(pod: Pod, how: str) -> None:
    caller = Caller(pod)
    message = caller.message("subscriptions/listen", 4, notifications={"toolsListChanged": True})
    async with caller.stream(message) as stream:
        await stream.next()
        await Caller(pod).call("hang_up", how=how)
        ended = await stream.next()
        assert (ended["id"], ended["result"]["_meta"]) == (4, {SUBSCRIPTION: 4})
        await asyncio.wait_for(stream.ended.wait(), 5)


async def test_a_relay_that_stops_ends_subscriptions_in_good_order(pod: Pod) -> None:
    caller = Caller(pod)
    message = caller.message("subscriptions/listen", 4, notifications={"toolsListChanged": True})
    async with caller.stream(message) as stream:
        await stream.next()
        await pod.stop_relay()
        assert (await stream.next())["result"]["resultType"] == "complete"


async def test_a_server_that_sends_requests_all_the_same_gets_no_answer(pod: Pod) -> None:
    assert await Caller(pod, {"roots": {}}).text("request") == []
    metrics = (await pod.admin("GET", "/metrics")).text
    assert 'mcp_relay_server_requests_total{outcome="refused"} 1.0' in metrics


async def test_a_wish_for_input_passes_with_its_state(pod: Pod) -> None:
    caller = Caller(pod, {"roots": {}})
    wish = (await caller.call("ask"))["result"]
    assert (wish["resultType"], wish["inputRequests"], wish["requestState"]) == (
        "input_required",
        {"q": {"method": "roots/list"}},
        "1",
    )
    again = {"name": "ask", "arguments": {}, "requestState": "1", "inputResponses": {"q": {"roots": []}}}
    answer = await caller.request("tools/call", **again)
    assert json.loads(answer["result"]["content"][0]["text"]) == {
        "responses": {"q": {"roots": []}},
        "state": 1,
    }


async def test_a_restarted_relay_goes_on_and_leaves_no_subscription_behind(make_pod: Any) -> None:
    pod = await make_pod("stateless", relay="process", protocol="Modern")
    await pod.until("Connected")
    await pod.kill_relay()
    await pod.spawn_relay()
    status = await pod.until("Connected")
    assert status.session.adopted
    assert status.handshakes == 1
    assert len(await received(pod, "server/discover")) == 1
    await Caller(pod).call("change")

    async def one_each() -> bool:
        return len(await listening(pod)) == 1

    await eventually(one_each)


async def test_a_request_from_nowhere_else_than_the_old_revisions_still_needs_a_session(pod: Pod) -> None:
    reply = await pod.client().post(body("tools/list", 1))
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, -32000)
    assert PREFIX not in reply.text
