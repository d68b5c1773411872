import asyncio
import json
from typing import Any

import pytest

from relaykit.client import Client, body
from relaykit.pod import Pod
from relaykit.waiting import eventually

SAMPLING = "sampling/createMessage"


async def answer_question(client: Client, message: dict[str, Any], result: dict[str, Any]) -> None:
    answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
    assert (await client.post(answer)).status_code == 202


@pytest.mark.parametrize(
    ("capability", "method"),
    [("sampling", SAMPLING), ("elicitation", "elicitation/create"), ("roots", "roots/list")],
)
async def test_a_question_of_the_server_reaches_the_client_whose_call_asks_it(
    pod: Pod, capability: str, method: str
) -> None:
    client, other = await pod.connected(capabilities={capability: {}}), await pod.connected()
    message = body("tools/call", 1, name="ask", arguments={"id": 1, "method": method, "params": {"n": 1}})
    async with other.stream() as foreign, client.stream("POST", message) as stream:
        question = await stream.next()
        assert (question["method"], question["params"]) == (method, {"n": 1})
        await answer_question(client, question, {"model": "m"})
        answer = await stream.next()
        assert json.loads(answer["result"]["content"][0]["text"]) == {"result": {"model": "m"}}
        assert foreign.waiting() == 0


@pytest.mark.parametrize("chosen", [(), ("sampling", "roots")])
async def test_the_server_is_told_only_of_the_capabilities_that_were_chosen(
    make_pod: Any, chosen: tuple[str, ...]
) -> None:
    pod = await make_pod(client_capabilities=chosen)
    client = await pod.connected(capabilities={"elicitation": {}})
    assert client.initialized["result"]["serverInfo"]["declared"] == {name: {} for name in chosen}


async def test_an_answer_of_another_session_does_not_count(pod: Pod) -> None:
    client, other = await pod.connected(capabilities={"sampling": {}}), await pod.connected()
    message = body("tools/call", 1, name="ask", arguments={"id": "x", "method": SAMPLING})
    async with client.stream("POST", message) as stream:
        question = await stream.next()
        await answer_question(other, question, {"model": "forged"})
        await answer_question(client, question, {"model": "true"})
        await answer_question(client, question, {"model": "twice"})
        answer = await stream.next()
        assert json.loads(answer["result"]["content"][0]["text"]) == {"result": {"model": "true"}}


async def test_a_question_nobody_can_answer_is_refused_at_once(pod: Pod) -> None:
    incapable = await pod.connected()
    for method in (SAMPLING, "elicitation/create", "roots/list", "nonsense"):
        assert (await incapable.text("ask", method=method))["error"]["code"] == -32601


async def test_while_two_sessions_call_no_question_is_passed_on(pod: Pod) -> None:
    client = await pod.connected(capabilities={"sampling": {}})
    other = await pod.connected(capabilities={"sampling": {}})
    busy = asyncio.create_task(other.call("hold", 1))
    release = await pod.holding()
    assert (await client.text("ask", method=SAMPLING))["error"]["code"] == -32601
    release()
    assert (await busy)["result"]
    text = (await pod.admin("GET", "/metrics")).text
    assert 'mcp_relay_server_requests_total{outcome="refused"} 1.0' in text


async def test_a_call_that_was_given_up_still_counts_as_its_clients_business(pod: Pod) -> None:
    client = await pod.connected(capabilities={"sampling": {}})
    other = await pod.connected()
    call = asyncio.create_task(other.call("sleep", 1, seconds=5))
    await pod.in_flight(1)
    await other.notify("notifications/cancelled", requestId=1)
    await call
    assert (await client.text("ask", method=SAMPLING))["error"]["code"] == -32601


async def test_a_client_that_leaves_ends_the_question_it_was_asked(pod: Pod) -> None:
    client, other = await pod.connected(capabilities={"sampling": {}}), await pod.connected()
    message = body("tools/call", 1, name="ask", arguments={"id": 5, "method": SAMPLING})
    async with client.stream("POST", message) as stream:
        await stream.next()
        await client.delete()
        assert "ended" in (await stream.next())["error"]["message"]
    assert (await other.call("echo", text="x"))["result"]


async def test_a_withdrawn_question_is_withdrawn_under_the_id_the_client_knows(pod: Pod) -> None:
    client = await pod.connected(capabilities={"sampling": {}})
    await client.call("withdraw", method=SAMPLING)
    question, withdrawal = client.notes
    assert withdrawal["params"] == {"requestId": question["id"], "reason": "changed my mind"}


async def test_a_ping_of_the_server_is_answered_by_the_relay(pod: Pod) -> None:
    client = await pod.connected()
    assert await client.text("ask", method="ping") == {"result": {}}


async def test_log_messages_go_to_the_one_session_that_calls(pod: Pod) -> None:
    client, other = await pod.connected(), await pod.connected()
    await client.call("log", level="info")
    assert [note["params"]["level"] for note in client.notes] == ["info"]
    busy = asyncio.create_task(other.call("hold", 1))
    release = await pod.holding()
    await client.call("log", level="error")
    assert len(client.notes) == 1
    release()
    assert (await busy)["result"]
    assert other.notes == []


async def test_the_log_level_is_the_most_verbose_and_each_session_sees_its_own(pod: Pod) -> None:
    quiet, verbose = await pod.connected(), await pod.connected()
    assert (await quiet.request("logging/setLevel", level="error"))["result"] == {}
    assert (await verbose.request("logging/setLevel", level="debug"))["result"] == {}
    assert (await quiet.request("logging/setLevel", level="warning"))["result"] == {}
    await quiet.call("log", level="info")
    await verbose.call("log", level="info")
    assert (quiet.notes, len(verbose.notes)) == ([], 1)
    levels = [m for m in (await quiet.text("stats"))["received"] if m.startswith("logging")]
    assert levels == ["logging/setLevel:error", "logging/setLevel:debug"]


async def test_every_session_hears_once_that_the_tools_changed_and_the_status_follows(pod: Pod) -> None:
    first, second, late = [await pod.connected() for _ in range(3)]
    before = await pod.status()
    async with first.stream() as one, second.stream() as two:
        await late.call("change")
        assert (await one.next())["method"] == "notifications/tools/list_changed"
        assert (await two.next())["method"] == "notifications/tools/list_changed"
        async with late.stream() as three:
            assert (await three.next())["method"] == "notifications/tools/list_changed"
    after = await pod.status()
    async with asyncio.timeout(5):
        while after.tools_digest == before.tools_digest:
            after = await pod.status(after.revision, 5)
    assert after.tool_count == (before.tool_count or 0) + 1


async def test_a_burst_of_changes_is_read_in_few_readings(pod: Pod) -> None:
    client = await pod.connected()
    await client.call("change", notices=50)
    before = await pod.status()

    async def read_again() -> bool:
        return bool((await client.text("stats"))["listed"] >= 2)

    await eventually(read_again)
    await asyncio.sleep(0.5)
    assert (await client.text("stats"))["listed"] <= 3
    assert (await pod.status()).revision - before.revision <= 3


async def test_a_list_that_cannot_be_read_again_leaves_the_old_one(pod: Pod) -> None:
    client = await pod.connected()
    before = await pod.status()
    await client.call("change", fail=True)

    async def asked_again() -> bool:
        return bool((await client.text("stats"))["received"].count("tools/list") == 2)

    await eventually(asked_again)
    assert (await client.text("echo", text="the refusal came before this")) == "the refusal came before this"
    after = await pod.status()
    assert (after.state, after.tool_count, after.error) == ("Connected", before.tool_count, None)


async def test_resource_updates_go_to_subscribers_and_the_server_hears_of_one_subscription(pod: Pod) -> None:
    first, second, third = [await pod.connected() for _ in range(3)]
    async with first.stream() as one, second.stream() as two, third.stream() as three:
        for client in (first, second):
            assert (await client.request("resources/subscribe", uri="file://a"))["result"] == {}
        await third.call("updated", uri="file://a")
        assert (await one.next())["params"] == {"uri": "file://a"}
        assert (await two.next())["params"] == {"uri": "file://a"}
        await first.request("resources/unsubscribe", uri="file://a")
        await third.call("updated", uri="file://a")
        assert (await two.next())["params"] == {"uri": "file://a"}
        assert (one.waiting(), three.waiting()) == (0, 0)
        assert (await third.text("stats"))["received"].count("resources/subscribe") == 1
        assert "resources/unsubscribe" not in (await third.text("stats"))["received"]
        await second.delete()
        assert (await third.text("stats"))["received"].count("resources/unsubscribe") == 1


async def test_a_client_that_subscribes_to_too_much_is_told_and_hurts_nobody(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_sidecar.core.interests.MAX_SUBSCRIPTIONS", 5)
    greedy, modest = await pod.connected(), await pod.connected()
    answers = await asyncio.gather(
        *(greedy.request("resources/subscribe", uri=f"file://{number}") for number in range(20))
    )
    refused = [answer["error"] for answer in answers if "error" in answer]
    assert len(refused) == 15
    assert refused[0]["data"] == {"reason": "subscription_limit"}
    assert "5 subscriptions" in refused[0]["message"]
    assert (await modest.request("resources/subscribe", uri="file://mine"))["result"] == {}
    long = await modest.request("resources/subscribe", uri="file://" + "x" * 3000)
    assert "2048 bytes" in long["error"]["message"]
    assert (await modest.text("stats"))["received"].count("resources/subscribe") == 6
    await greedy.delete()
    assert len(json.loads((pod.directory / "state" / "interests.json").read_text())["subscribers"]) == 1


async def test_a_state_that_cannot_be_written_costs_no_call_and_no_connection(pod: Pod) -> None:
    client = await pod.connected()
    (pod.directory / "state").rename(pod.directory / "away")
    before = await pod.status()
    async with asyncio.timeout(3):
        assert (await client.request("resources/subscribe", uri="file://a"))["result"] == {}
        assert (await client.request("logging/setLevel", level="error"))["result"] == {}
    async with client.stream() as stream:
        await client.call("updated", uri="file://a")
        assert (await stream.next())["params"] == {"uri": "file://a"}
    assert (await client.delete()).status_code == 200
    assert (await pod.status()).since == before.since


async def test_what_sessions_wanted_that_never_came_back_is_forgotten(make_pod: Any) -> None:
    pod = await make_pod(idle_timeout=0.8)
    gone = await pod.connected()
    await gone.request("resources/subscribe", uri="file://gone")
    await pod.stop_relay()
    await pod.relay()
    async with (await pod.connected()).stream():
        path = pod.directory / "state" / "interests.json"

        async def forgotten() -> bool:
            return not json.loads(path.read_text())["subscribers"]

        await eventually(forgotten)


async def test_a_notification_of_an_unknown_kind_follows_the_rule_of_attribution(pod: Pod) -> None:
    client = await pod.connected()
    await client.call("unrelated", method="notifications/vendor/news", params={"a": None})
    assert client.notes == [{"jsonrpc": "2.0", "method": "notifications/vendor/news", "params": {"a": None}}]
