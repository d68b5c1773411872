"""Clients without sessions at a server with a handshake: unwrapped, completed, and asked in between."""

import asyncio
import json
from typing import Any

import pytest

from mcp_sidecar.session.modern import bridge
from relaykit.pod import Pod
from relaykit.stateless import PREFIX, SUBSCRIPTION, Caller
from relaykit.waiting import eventually

ROOTS = "roots/list"
INFO = PREFIX + "serverInfo"


def answered(answer: dict[str, Any]) -> Any:
    return json.loads(answer["result"]["content"][0]["text"])


async def ask(caller: Caller, number: Any = 1, **more: Any) -> dict[str, Any]:
    """Call the tool that asks its client for something; `more` are params of a repetition."""
    arguments = {"id": number, "method": ROOTS, "params": {"n": 1.5}}
    return await caller.request("tools/call", name="ask", arguments=arguments, **more)


async def test_a_discovery_is_answered_from_the_handshake(pod: Pod) -> None:
    reply = await Caller(pod).request("server/discover", "d")
    result = reply["result"]
    assert (reply["id"], result["resultType"], result["supportedVersions"]) == (
        "d",
        "complete",
        ["2026-07-28"],
    )
    assert result["capabilities"]["tools"] == {"listChanged": True}
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")
    assert result["_meta"][INFO]["name"] == "scripted"
    assert (await pod.status()).handshakes == 1


async def test_the_server_sees_no_envelope_and_the_client_a_whole_result(pod: Pod) -> None:
    caller = Caller(pod, {"roots": {}}, level=None)
    echoed = await caller.request("vendor/echo", "v", big=2**70, _meta={"x/y": None})
    assert echoed["id"] == "v"
    assert echoed["result"].pop("resultType") == "complete"
    assert echoed["result"]["_meta"].pop(INFO)["version"] == "1"
    assert echoed["result"] == {"big": 2**70, "_meta": {"x/y": None}}
    listed = (await caller.request("tools/list"))["result"]
    assert (listed["ttlMs"], listed["cacheScope"]) == (0, "private")
    big = await caller.call("big", n=3_000_000)
    assert (len(big["result"]["content"][0]["text"]), big["result"]["resultType"]) == (3_000_000, "complete")
    tail = await caller.call("tail", n=3_000_000)
    assert (tail["id"], tail["result"]["resultType"]) == (caller.sent, "complete")


async def test_methods_of_the_older_revisions_are_not_offered(pod: Pod) -> None:
    caller = Caller(pod)
    for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe", "prompts/list"):
        reply = await caller.post(caller.message(method, 9))
        assert (reply.status_code, reply.json()["error"]["code"]) == (404, -32601)
    received = (await caller.text("stats"))["received"]
    assert "prompts/list" not in received
    assert "ping" not in received


async def test_progress_comes_before_the_answer(pod: Pod) -> None:
    caller = Caller(pod)
    await caller.request("tools/call", name="progress", arguments={}, _meta={"progressToken": "p"})
    assert [note["params"]["progressToken"] for note in caller.notes] == ["p"] * 3


async def test_what_the_server_asks_is_answered_by_the_repetition(pod: Pod) -> None:
    caller = Caller(pod, {"roots": {}})
    wish = (await ask(caller))["result"]
    ((key, question),) = wish["inputRequests"].items()
    assert (wish["resultType"], question) == ("input_required", {"method": ROOTS, "params": {"n": 1.5}})
    responses = {key: {"roots": [1e3]}, "nobody asked": {}}
    done = await ask(caller, requestState=wish["requestState"], inputResponses=responses)
    assert answered(done) == {"result": {"roots": [1000.0]}}
    assert done["id"] == caller.sent
    await pod.in_flight(0)


async def test_a_missing_answer_is_asked_for_again(pod: Pod) -> None:
    caller = Caller(pod, {"roots": {}})
    wish = (await ask(caller))["result"]
    again = (await ask(caller, requestState=wish["requestState"]))["result"]
    assert again["inputRequests"] == wish["inputRequests"]
    (key,) = again["inputRequests"]
    done = await ask(caller, requestState=again["requestState"], inputResponses={key: {}})
    assert answered(done) == {"result": {}}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda state: state + "-TAMPERED",
        lambda _state: "",
        lambda _state: 7,
        lambda state: state[:-1] + ("A" if state[-1] != "A" else "B"),
    ],
)
async def test_a_state_that_was_not_given_is_refused_and_the_call_goes_on_waiting(
    pod: Pod, spoil: Any
) -> None:
    caller = Caller(pod, {"roots": {}})
    wish = (await ask(caller))["result"]
    (key,) = wish["inputRequests"]
    refused = await ask(caller, requestState=spoil(wish["requestState"]), inputResponses={key: {}})
    assert refused["error"]["code"] == -32602
    elsewhere = {"name": "echo", "arguments": {}, "requestState": wish["requestState"]}
    assert (await caller.request("tools/call", **elsewhere))["error"]["code"] == -32602
    odd = await ask(caller, requestState=wish["requestState"], inputResponses={key: 7})
    assert odd["error"]["code"] == -32602
    done = await ask(caller, requestState=wish["requestState"], inputResponses={key: {}})
    assert answered(done) == {"result": {}}
    twice = await ask(caller, requestState=wish["requestState"], inputResponses={key: {}})
    assert twice["error"]["code"] == -32602


async def test_who_cannot_answer_is_not_asked(pod: Pod) -> None:
    assert answered(await ask(Caller(pod)))["error"]["code"] == -32601


async def test_nobody_is_asked_while_others_call(pod: Pod) -> None:
    caller = Caller(pod, {"roots": {}})
    other = asyncio.create_task(Caller(pod).call("sleep", seconds=30))
    await pod.in_flight(1)
    assert answered(await ask(caller))["error"]["code"] == -32601
    other.cancel()
    await asyncio.gather(other, return_exceptions=True)


async def test_a_client_that_does_not_come_back_is_given_up(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge, "PARKED_SECONDS", 0.2)
    caller = Caller(pod, {"roots": {}})
    wish = (await ask(caller))["result"]
    await pod.in_flight(0)
    (key,) = wish["inputRequests"]
    late = await ask(caller, requestState=wish["requestState"], inputResponses={key: {}})
    assert late["error"]["code"] == -32602
    assert "notifications/cancelled" in (await caller.text("stats"))["received"]


async def test_what_becomes_of_a_call_while_its_client_is_away_is_told_when_it_comes_back(pod: Pod) -> None:
    caller = Caller(pod, {"roots": {}})
    arguments = {"method": ROOTS, "params": {}, "id": 1, "answer_anyway": True}
    wish = (await caller.request("tools/call", name="ask_and_go", arguments=arguments))["result"]
    (await pod.holding())()
    await pod.in_flight(0)
    (key,) = wish["inputRequests"]
    again = {"requestState": wish["requestState"], "inputResponses": {key: {}}}
    done = await caller.request("tools/call", 77, name="ask_and_go", arguments=arguments, **again)
    assert (done["id"], done["result"]["content"][0]["text"]) == (77, "gone ahead")


async def test_a_question_that_the_server_takes_back_is_not_put(pod: Pod) -> None:
    caller = Caller(pod, {"roots": {}})
    done = await caller.request("tools/call", name="withdraw", arguments={"method": ROOTS})
    assert done["result"]["content"][0]["text"] == "withdrawn"
    assert caller.notes == []


async def test_the_process_may_end_while_a_client_is_away(pod: Pod) -> None:
    caller = Caller(pod, {"roots": {}})
    wish = (await ask(caller))["result"]
    await Caller(pod).call("exit", code=3)
    await pod.until("Exited")
    again = caller.message(
        "tools/call",
        name="ask",
        arguments={"id": 1, "method": ROOTS, "params": {"n": 1.5}},
        requestState=wish["requestState"],
    )
    reply = await caller.post(again)
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, -31000)


async def test_log_messages_come_only_if_asked_for_and_the_server_is_told(pod: Pod) -> None:
    silent, loud = Caller(pod), Caller(pod, level="warning")
    await silent.call("log", level="error")
    assert silent.notes == []
    await loud.call("log", level="info")
    await loud.call("log", level="error")
    assert [note["params"]["level"] for note in loud.notes] == ["error"]
    assert "logging/setLevel:warning" in (await silent.text("stats"))["received"]


async def test_subscriptions_are_fed_by_what_all_clients_are_told(pod: Pod) -> None:
    caller = Caller(pod)
    asked = {"toolsListChanged": True, "promptsListChanged": True, "resourceSubscriptions": ["file://a"]}
    async with caller.stream(caller.message("subscriptions/listen", "l", notifications=asked)) as stream:
        acknowledged = await stream.next()
        assert acknowledged["params"] == {
            "_meta": {SUBSCRIPTION: "l"},
            "notifications": {"toolsListChanged": True, "resourceSubscriptions": ["file://a"]},
        }
        await caller.call("change")
        told = await stream.next()
        assert (told["method"], told["params"]) == (
            "notifications/tools/list_changed",
            {"_meta": {SUBSCRIPTION: "l"}},
        )
        await caller.call("updated", uri="file://b")
        await caller.call("updated", uri="file://a")
        told = await stream.next()
        assert told["params"] == {"uri": "file://a", "_meta": {SUBSCRIPTION: "l"}}
        assert (await caller.text("stats"))["received"].count("resources/subscribe") == 1

    async def unsubscribed() -> bool:
        return "resources/unsubscribe" in (await caller.text("stats"))["received"]

    await eventually(unsubscribed)


async def test_a_subscription_without_sense_is_refused(pod: Pod) -> None:
    caller = Caller(pod)
    reply = await caller.post(caller.message("subscriptions/listen", notifications=7))
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, -32602)
    message = caller.message("subscriptions/listen", notifications={})
    assert (await caller.post(message, accept="application/json")).status_code == 406


async def test_a_relay_that_stops_ends_emulated_subscriptions_in_good_order(pod: Pod) -> None:
    caller = Caller(pod)
    message = caller.message("subscriptions/listen", 4, notifications={"toolsListChanged": True})
    async with caller.stream(message) as stream:
        await stream.next()
        await pod.stop_relay()
        ended = await stream.next()
        assert (ended["id"], ended["result"]["resultType"]) == (4, "complete")


async def test_to_close_the_connection_cancels_the_call(pod: Pod) -> None:
    caller = Caller(pod)
    call = asyncio.create_task(caller.call("sleep", seconds=30))
    await pod.in_flight(1)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    await pod.in_flight(0)
    assert len((await caller.text("stats"))["cancelled"]) == 1


async def test_a_missing_resource_has_the_code_of_this_revision(pod: Pod) -> None:
    caller = Caller(pod)
    reply = await caller.post(caller.message("resources/read", 5, uri="file://missing"))
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, -32602)
    assert reply.json()["error"]["data"] == {"uri": "file://missing"}
