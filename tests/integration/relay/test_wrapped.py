"""Clients with sessions at a server without: what was the session's is the relay's, the rest is wrapped."""

import asyncio
import json
from typing import Any

import pytest

from relaykit.client import Client, body
from relaykit.pod import Pod
from relaykit.stateless import PREFIX, Caller
from relaykit.waiting import eventually

QUESTIONS = {
    "who": {"method": "elicitation/create", "params": {"message": "Who?", "n": 1.5}},
    "where": {"method": "roots/list"},
}


@pytest.fixture
async def pod(make_pod: Any) -> Pod:
    """A pod whose server has no sessions, connected."""
    made: Pod = await make_pod("stateless", protocol="Modern")
    await made.until("Connected")
    return made


async def stats(pod: Pod) -> dict[str, Any]:
    return dict(await Caller(pod).text("stats"))


async def answer(client: Client, question: dict[str, Any], **outcome: Any) -> None:
    assert (await client.post({"jsonrpc": "2.0", "id": question["id"], **outcome})).status_code == 202


async def test_a_session_begins_with_what_the_server_says_of_itself(pod: Pod) -> None:
    client = await pod.connected(revision="2025-06-18")
    result = client.initialized["result"]
    assert result["protocolVersion"] == "2025-06-18"
    assert (result["serverInfo"]["name"], result["instructions"]) == ("stateless", "be kind")
    assert result["capabilities"]["resources"] == {"subscribe": True}


async def test_each_request_says_who_sent_it(pod: Pod) -> None:
    client = await pod.connected(capabilities={"sampling": {"tools": {}}, "roots": {}})
    note: dict[str, Any] = {"progressToken": "tok", "x/y": None}
    reply = await client.request("tools/call", "7", name="progress", arguments={"a": 1e3}, _meta=note)
    assert (reply["id"], reply["result"].keys()) == ("7", {"content"})
    assert [step["params"]["progressToken"] for step in client.notes] == ["tok", "tok"]
    (sent,) = [m for m in (await stats(pod))["received"] if m.get("params", {}).get("name") == "progress"]
    assert sent["params"]["arguments"] == {"a": 1000.0}
    assert sent["params"]["_meta"] == {
        "progressToken": sent["id"],
        "x/y": None,
        PREFIX + "protocolVersion": "2026-07-28",
        PREFIX + "clientCapabilities": {"sampling": {"tools": {}}, "roots": {}},
        PREFIX + "clientInfo": {"name": "test", "version": "1"},
        PREFIX + "logLevel": "info",
    }


async def test_what_belongs_to_this_revision_is_not_shown(pod: Pod) -> None:
    client = await pod.connected()
    listed = (await client.request("tools/list"))["result"]
    assert listed.keys() == {"tools"}
    assert (await client.request("vendor/echo", x=1))["result"]["x"] == 1
    odd = await client.post(body("tools/call", 5, name="odd"))
    assert b'"x":1.0E2,"n":null,"s":"\\ud800"' in odd.content
    assert (await client.call("fail", code=-32021))["error"]["data"] == {"why": None}
    for method in ("server/discover", "subscriptions/listen", "tasks/list", "prompts/nonsense"):
        assert (await client.request(method))["error"]["code"] == -32601


async def test_what_the_server_has_no_methods_for_is_answered_here(pod: Pod) -> None:
    client = await pod.connected()
    assert (await client.request("ping"))["result"] == {}
    assert (await client.request("logging/setLevel", level="error"))["result"] == {}
    assert (await client.request("logging/setLevel", level="loud"))["error"]["code"] == -32602
    await client.call("log", level="warning")
    await client.call("log", level="error")
    assert [note["params"]["level"] for note in client.notes] == ["error"]
    methods = {message["method"] for message in (await stats(pod))["received"]}
    assert methods <= {"server/discover", "subscriptions/listen", "tools/list", "tools/call"}


async def test_resources_are_subscribed_to_once_and_told_to_who_wants_them(pod: Pod) -> None:
    first, second = await pod.connected(), await pod.connected()
    async with first.stream() as one, second.stream() as two:
        assert (await first.request("resources/subscribe", uri="file://a"))["result"] == {}
        assert (await second.request("resources/subscribe", uri="file://a"))["result"] == {}
        assert (await second.request("resources/subscribe", uri="file://b"))["result"] == {}
        assert (await second.request("resources/subscribe", uri=7))["error"]["code"] == -32602

        async def settled() -> bool:
            listening = [set(x.get("resourceSubscriptions", ())) for x in (await stats(pod))["listening"]]
            return sorted(listening, key=len) == [set(), {"file://a", "file://b"}]

        await eventually(settled)
        await first.call("change", uri="file://a")
        for stream in (one, two):
            told = await stream.next()
            assert (told["method"], told["params"]) == (
                "notifications/resources/updated",
                {"uri": "file://a"},
            )
        await second.request("resources/unsubscribe", uri="file://a")
        await second.delete()

        async def left() -> bool:
            listening = (await stats(pod))["listening"]
            return {"resourceSubscriptions": ["file://a"]} in listening and len(listening) == 2

        await eventually(left)
        await first.call("change", uri="file://a")
        assert (await one.next())["params"] == {"uri": "file://a"}
        assert (one.waiting(), two.waiting()) == (0, 0)


async def test_a_changed_list_is_told_once_to_each(pod: Pod) -> None:
    client = await pod.connected()
    async with client.stream() as stream:
        await client.call("change")
        assert await stream.next() == {
            "jsonrpc": "2.0",
            "method": "notifications/tools/list_changed",
            "params": {},
        }
        assert stream.waiting() == 0


async def test_subscriptions_that_the_server_ends_are_begun_again(pod: Pod) -> None:
    client = await pod.connected()
    async with client.stream() as stream:
        await client.request("resources/subscribe", uri="file://a")
        await client.call("hang_up", how="answer")

        async def again() -> bool:
            return len((await stats(pod))["listening"]) == 2

        await eventually(again)
        await client.call("change", uri="file://a")
        assert (await stream.next())["params"] == {"uri": "file://a"}


async def test_what_the_server_wants_to_know_is_asked_and_the_call_repeated(pod: Pod) -> None:
    client = await pod.connected(capabilities={"elicitation": {}, "roots": {}})
    message = body("tools/call", "c", name="ask", arguments={"questions": QUESTIONS, "rounds": 2})
    async with client.stream("POST", message) as stream:
        for _ in range(2):
            asked = {question["method"]: question for question in [await stream.next(), await stream.next()]}
            assert asked["elicitation/create"]["params"] == {"message": "Who?", "n": 1.5}
            await answer(client, asked["roots/list"], result={"roots": []})
            await answer(client, asked["elicitation/create"], result={"action": "accept", "big": 2**70})
        done = await stream.next()
    assert (done["id"], done["result"].keys()) == ("c", {"content"})
    assert json.loads(done["result"]["content"][0]["text"]) == {
        "responses": {"who": {"action": "accept", "big": 2**70}, "where": {"roots": []}},
        "state": 2,
    }


async def test_a_wish_without_questions_is_met_by_asking_again(pod: Pod) -> None:
    client = await pod.connected()
    done = await client.call("ask", questions={}, rounds=3)
    assert json.loads(done["result"]["content"][0]["text"]) == {"responses": None, "state": 3}


@pytest.mark.parametrize(
    ("questions", "words"),
    [
        ({}, "asks for more without end"),
        ({"q": {"method": "roots/list"}}, "does not offer"),
        ({"q": {"method": "vendor/x"}}, "does not offer"),
        ({"q": 7}, "does not offer"),
        ([1], "asks for nothing that is known"),
    ],
)
async def test_wishes_that_cannot_be_met_end_the_call(pod: Pod, questions: Any, words: str) -> None:
    client = await pod.connected(capabilities={"sampling": {}})
    error = (await client.call("ask", questions=questions, rounds=1000))["error"]
    assert error["code"] == -32000
    assert words in error["message"]
    await pod.in_flight(0)


async def test_a_call_is_not_repeated_that_there_was_no_room_to_keep(make_pod: Any) -> None:
    pod = await make_pod("stateless", protocol="Modern", max_message_bytes=4000)
    await pod.until("Connected")
    client = await pod.connected(capabilities={"roots": {}})
    sleeping = [asyncio.create_task(client.call("sleep", n, seconds=30, x="x" * 3500)) for n in (1, 2)]
    await pod.in_flight(2)
    error = (await client.call("ask", x="x" * 3500))["error"]
    assert error["message"] == "MCP server 'demo' asks for more, but the call is too large to be repeated"
    for number in (1, 2):
        await client.notify("notifications/cancelled", requestId=number)
    assert all("error" in answer for answer in await asyncio.gather(*sleeping))
    assert "result" in await client.call("ask", x="x" * 3500, questions={})


async def test_answers_that_are_too_large_together_are_not_passed_on(make_pod: Any) -> None:
    pod = await make_pod("stateless", protocol="Modern", max_message_bytes=4000)
    await pod.until("Connected")
    client = await pod.connected(capabilities={"roots": {}, "elicitation": {}})
    message = body("tools/call", 3, name="ask", arguments={"questions": QUESTIONS})
    async with client.stream("POST", message) as stream:
        for question in [await stream.next(), await stream.next()]:
            await answer(client, question, result={"x": "x" * 3000})
        error = (await stream.next())["error"]
    assert error["message"] == "MCP server 'demo' cannot be given answers of that size"


async def test_a_client_that_refuses_to_answer_ends_the_call_with_its_own_error(pod: Pod) -> None:
    client = await pod.connected(capabilities={"roots": {}})
    message = body("tools/call", 3, name="ask", arguments={})
    async with client.stream("POST", message) as stream:
        question = await stream.next()
        await answer(client, question, error={"code": -1, "message": "User rejected", "data": {"x": None}})
        done = await stream.next()
    assert done["error"] == {"code": -1, "message": "User rejected", "data": {"x": None}}


async def test_a_call_whose_client_is_asked_can_be_cancelled(pod: Pod) -> None:
    client = await pod.connected(capabilities={"roots": {}})
    async with client.stream("POST", body("tools/call", 3, name="ask", arguments={})) as stream:
        question = await stream.next()
        await client.notify("notifications/cancelled", requestId=3)
        assert (await stream.next())["error"]["message"] == "Request cancelled"
    await answer(client, question, result={"roots": []})
    assert [m for m in (await stats(pod))["received"] if "inputResponses" in m.get("params", {})] == []


async def test_a_cancelled_call_is_cancelled_at_the_server(pod: Pod) -> None:
    client = await pod.connected()
    call = asyncio.create_task(client.call("sleep", 9, seconds=30))
    await pod.in_flight(1)
    await client.notify("notifications/cancelled", requestId=9)
    assert (await call)["error"]["code"] == -32603
    received = (await stats(pod))["received"]
    (sent,) = [m for m in received if m.get("params", {}).get("name") == "sleep"]
    (told,) = [m for m in received if m["method"] == "notifications/cancelled"]
    assert told["params"]["requestId"] == sent["id"]


async def test_clients_of_both_kinds_share_the_process(pod: Pod) -> None:
    client, caller = await pod.connected(), Caller(pod)
    calls = [client.text("echo", n=n) for n in range(20)] + [caller.text("echo", n=n) for n in range(20)]
    assert await asyncio.gather(*calls) == [{"n": n} for n in range(20)] * 2
