"""A relay in front of a remote server over Streamable HTTP."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from relaykit.client import Client, body
from relaykit.pod import Pod
from relaykit.remote import Far, listed, pod_for, target
from relaykit.waiting import eventually

BIG = 12345678901234567890
MakePod = Callable[..., Awaitable[Pod]]


@pytest.fixture
async def client(near: MakePod) -> Client:
    pod = await near()
    await pod.until("Connected")
    return await pod.connected()


async def test_clients_share_one_session_with_a_remote_server(near: MakePod, far: Far) -> None:
    pod = await near()
    status = await listed(pod)
    assert status.session is not None
    assert status.session.server_info["name"] == "far"
    for number in range(3):
        client = await pod.connected()
        assert await client.text("echo", n=number) == {"n": number}
    assert await far.count("initialize") == 1


async def test_what_a_remote_server_says_passes_unchanged(client: Client) -> None:
    answer = await client.post(body("tools/call", "a", name="echo", arguments={"n": BIG}))
    assert f'"big": {BIG}' in answer.text
    assert '"none": null' in answer.text
    assert json.loads(answer.json()["result"]["content"][0]["text"]) == {"n": BIG}
    listed = await client.request("tools/list")
    assert listed["result"]["tools"][0]["inputSchema"]["x-unknown"] == BIG
    assert listed["result"]["tools"][0]["future"] == [1]


async def test_session_and_revision_stand_in_the_headers_of_every_message(client: Client, far: Far) -> None:
    await client.call("echo")
    first, *others = (await far.stats())["headers"]
    assert "mcp-session-id" not in first
    assert len({headers["mcp-session-id"] for headers in others}) == 1
    assert {headers["mcp-protocol-version"] for headers in others} == {"2025-11-25"}


async def test_an_answer_of_8_mib_comes_whole(client: Client) -> None:
    size = 8 * 1024 * 1024
    answer = await client.call("big", bytes=size)
    assert answer["result"]["content"][0]["text"] == "x" * size


async def test_an_answer_by_event_stream_brings_its_progress_along(client: Client, far: Far) -> None:
    await far.control(sse=True)
    params = {"name": "echo", "arguments": {"a": 1}, "_meta": {"progressToken": "mine"}}
    answer = await client.request("tools/call", 5, **params)
    assert answer["id"] == 5
    assert [note["params"]["progressToken"] for note in client.notes] == ["mine"]


async def test_a_stream_that_breaks_off_is_taken_up_where_it_was(client: Client, far: Far) -> None:
    await far.control(sse=True, resumable=True)
    assert await client.text("echo", a=2) == {"a": 2}
    told = await far.stats()
    assert told["resumed"] == ["call-1"]
    assert told["seen"].count("tools/call") == 1


async def test_a_changed_tool_list_is_heard_on_the_stream(near: MakePod, far: Far) -> None:
    pod = await near()
    await pod.until("Connected")

    async def listening() -> bool:
        return bool((await far.stats())["streams"] == 1)

    await eventually(listening)
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    await far.control(tools=["echo", "more"], push=[changed])
    await listed(pod, "echo", "more")


async def test_the_session_is_ended_with_the_relay(near: MakePod, far: Far) -> None:
    pod = await near()
    await pod.until("Connected")
    await pod.stop_relay()
    assert (await far.stats())["deleted"] == 1


async def test_a_relay_that_was_killed_goes_on_with_the_session(near: MakePod, far: Far) -> None:
    pod = await near(start=False)
    await pod.spawn_relay()
    before = await pod.until("Connected")
    await pod.kill_relay()
    await pod.spawn_relay()
    after = await pod.until("Connected")
    assert before.process is not None
    assert after.process is not None
    assert after.process.incarnation == before.process.incarnation
    assert after.session is not None
    assert after.session.adopted
    assert await far.count("initialize") == 1


SPELLINGS = [
    [404, "Session not found", -32001],
    [404, "Session not found. Please reinitialize.", -32000],
    [404, "Session terminated", -32600],
    [404, "session expired", -32000],
    [404, "Connection closed", -32000],
    [400, "Bad Request: No valid session ID provided", -32000],
    [400, "Bad Request: Server not initialized", -32000],
    [200, "Session terminated", -32001],
    [200, "session expired", -32000],
]


@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda spelling: f"{spelling[0]}-{spelling[1]}")
async def test_a_lost_session_in_every_spelling_costs_one_new_one(
    client: Client, far: Far, spelling: list[Any]
) -> None:
    await far.control(forget=["sessions"], spelling=spelling)
    assert await client.text("echo", a=1) == {"a": 1}
    assert await far.count("initialize") == 2


@pytest.mark.parametrize(
    "spelling", [[200, "Connection closed", -32000], [200, "The session 17 has expired", -32001]], ids=str
)
async def test_a_lost_session_that_a_tool_may_have_told_of_is_replaced_and_no_call_is_sent_twice(
    client: Client, far: Far, spelling: list[Any]
) -> None:
    await far.control(forget=["sessions"], spelling=spelling)
    assert (await client.call("count"))["error"]["message"] == spelling[1]

    async def replaced() -> bool:
        return await far.count("initialize") == 2

    await eventually(replaced)
    assert await client.text("echo", a=1) == {"a": 1}
    assert await far.count("tools/call") == 2


@pytest.mark.parametrize("spelling", [[200, "Session terminated", -32001]], ids=str)
async def test_a_list_that_is_refused_with_200_is_asked_for_again_once_a_probe_told_the_session_lost(
    client: Client, far: Far, spelling: list[Any]
) -> None:
    await far.control(forget=["sessions"], spelling=spelling)
    assert "result" in await client.request("tools/list")
    assert await far.count("initialize") == 2
    assert await far.count("ping") >= 1


async def test_50_calls_after_a_restart_cost_one_handshake_and_no_call_gets_lost(
    near: MakePod, far: Far
) -> None:
    pod = await near(call_timeout=30.0)
    await pod.until("Connected")
    client = await pod.connected()
    await far.control(streams=False)
    far.kill()
    await far.start()
    answers = await asyncio.gather(*(client.call("count") for _ in range(50)))
    assert all("result" in answer for answer in answers), answers[0]
    told = await far.stats()
    assert told["seen"].count("initialize") == 1
    assert told["counter"] == 50


async def test_50_calls_after_a_lost_session_are_each_replayed_once(client: Client, far: Far) -> None:
    await far.control(forget=["sessions"])
    answers = await asyncio.gather(*(client.call("count") for _ in range(50)))
    assert all("result" in answer for answer in answers), answers[0]
    told = await far.stats()
    assert told["seen"].count("initialize") == 2
    assert told["counter"] == 50
    assert told["seen"].count("tools/call") <= 100


async def test_a_session_that_is_lost_again_is_told_the_caller(client: Client, far: Far) -> None:
    gone = {"jsonrpc": "2.0", "error": {"code": -32001, "message": "Session not found"}}
    await far.control(refuse=[{"method": "tools/call", "times": 2, "status": 404, "body": gone}])
    answer = await client.call("count")
    assert answer["error"]["message"] == "Session not found"
    assert (await far.stats())["counter"] == 0
    assert "result" in await client.call("count")


async def test_a_call_whose_answer_is_lost_is_not_sent_again(client: Client, far: Far) -> None:
    await far.control(refuse=[{"method": "tools/call", "times": 1, "close": True, "work": True}])
    answer = await client.call("count")
    assert answer["error"]["data"]["outcome"] == "unknown"
    assert (await far.stats())["counter"] == 1
    assert "result" in await client.call("echo")
    assert await far.count("initialize") == 1


@pytest.mark.parametrize("status", [429, 503])
async def test_a_server_that_wants_nothing_now_is_asked_again_in_the_same_session(
    client: Client, far: Far, status: int
) -> None:
    order = {"method": "tools/call", "times": 2, "status": status, "headers": {"retry_after": "0"}}
    await far.control(refuse=[order])
    assert await client.text("echo", a=1) == {"a": 1}
    told = await far.stats()
    assert told["seen"].count("tools/call") == 3
    assert told["seen"].count("initialize") == 1


async def test_a_server_that_wants_nothing_for_long_is_left_alone_and_callers_learn_it_at_once(
    client: Client, far: Far
) -> None:
    order = {"method": "tools/call", "times": 9, "status": 429, "headers": {"retry_after": "7200"}}
    await far.control(refuse=[order])
    for _ in range(3):
        assert "429" in (await client.call("echo"))["error"]["message"]
    assert await far.count("tools/call") == 1


async def test_a_call_that_failed_in_the_server_is_not_repeated(client: Client, far: Far) -> None:
    await far.control(refuse=[{"method": "tools/call", "times": 1, "status": 502, "body": "bad gateway"}])
    answer = await client.call("count")
    assert answer["error"]["data"]["outcome"] == "unknown"
    assert await far.count("tools/call") == 1


@pytest.mark.parametrize("status", [400, 403, 409, 422])
async def test_no_other_refusal_is_repeated(client: Client, far: Far, status: int) -> None:
    said = {"jsonrpc": "2.0", "error": {"code": -32602, "message": "no", "data": BIG}}
    await far.control(refuse=[{"method": "tools/call", "times": 1, "status": status, "body": said}])
    answer = await client.call("echo")
    assert answer["error"] == {"code": -32602, "message": "no", "data": BIG}
    assert await far.count("tools/call") == 1
    assert await far.count("initialize") == 1


async def test_a_server_that_goes_away_is_seen_by_its_stream_and_comes_back(near: MakePod, far: Far) -> None:
    pod = await near()
    await pod.until("Connected")

    async def listening() -> bool:
        return bool((await far.stats())["streams"] == 1)

    await eventually(listening)
    far.kill()
    status = await pod.until("Dropped")
    assert status.error is not None
    assert (status.error.phase, status.error.reason) == ("Transport", "RemoteUnreachable")
    await far.start()
    await pod.until("Connected")
    assert (await listed(pod)).error is None


async def test_a_server_that_is_not_there_yet_is_awaited(tmp_path: Path) -> None:
    far = Far()
    pod = pod_for(tmp_path, target(far.url))
    await pod.relay()
    try:

        async def told() -> bool:
            return (await pod.status()).error is not None

        await eventually(told)
        status = await pod.status()
        assert status.state == "Connecting"
        assert status.error is not None
        assert status.error.reason == "RemoteUnreachable"
        assert far.url in status.error.message
        await far.start()
        await pod.until("Connected", 20)
        assert (await pod.status()).error is None
    finally:
        await pod.stop()
        await far.stop()


async def test_a_redirect_on_the_same_server_is_followed(near: MakePod) -> None:
    pod = await near("/moved")
    await pod.until("Connected")
    assert await (await pod.connected()).text("echo", a=1) == {"a": 1}


async def test_headers_never_follow_a_redirect_to_another_server(
    near: MakePod, far: Far, tmp_path: Path
) -> None:
    other = Far()
    await other.start()
    try:
        await far.control(away=other.url)
        pod = await near("/away")

        async def told() -> bool:
            return (await pod.status()).error is not None

        await eventually(told)
        error = (await pod.status()).error
        assert error is not None
        assert error.reason == "RemoteRefused"
        assert "spec.remote.url" in error.message
        assert (await other.stats())["seen"] == []
    finally:
        await other.stop()
