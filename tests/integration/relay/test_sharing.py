import asyncio
import json
import random
from typing import Any

import pytest

from relaykit.client import Client, body, events
from relaykit.pod import Pod
from relaykit.waiting import eventually


async def test_a_client_gets_the_servers_answer_as_it_was_written(pod: Pod) -> None:
    client = await pod.connected()
    reply = await client.post(body("tools/call", "seven", name="odd", arguments={}))
    start = b'{"jsonrpc":"2.0","id":"seven","result":{"content":[{"type":"hologram"}],"x":1.0E2,"n":null,'
    assert reply.content == start + b'"big":123456789012345678901234567890,"s":"\\ud800"}}'


async def test_the_handshake_happens_once_for_all_clients(pod: Pod) -> None:
    clients = [await pod.connected() for _ in range(5)]
    stats = await clients[-1].text("stats")
    assert stats["initialize"] == 1
    assert stats["received"][:2] == ["initialize", "notifications/initialized"]
    assert {client.initialized["result"]["serverInfo"]["name"] for client in clients} == {"scripted"}


async def test_fifty_clients_with_colliding_ids_get_their_own_answers(pod: Pod) -> None:
    clients = await asyncio.gather(*(pod.connected() for _ in range(50)))

    async def twenty(name: int) -> None:
        for number in range(20):
            delay = random.choice((0, 0, 0.01))  # noqa: S311
            answer = await clients[name].call("echo", number, text=f"{name}/{number}", delay=delay)
            assert answer["id"] == number
            assert json.loads(answer["result"]["content"][0]["text"]) == f"{name}/{number}"

    await asyncio.gather(*(twenty(name) for name in range(50)))


async def test_ids_come_back_with_value_and_type_and_stay_apart(pod: Pod) -> None:
    client = await pod.connected()
    answers = await asyncio.gather(
        client.call("echo", 1, text="number", delay=0.05), client.call("echo", "1", text="string", delay=0.01)
    )
    assert [(a["id"], a["result"]["content"][0]["text"]) for a in answers] == [
        (1, '"number"'),
        ("1", '"string"'),
    ]


async def test_an_id_that_is_in_use_is_refused_and_the_first_call_keeps_its_answer(pod: Pod) -> None:
    client = await pod.connected()
    first = asyncio.create_task(client.call("hold", 7))
    release = await pod.holding()
    second = await client.call("echo", 7, text="x")
    assert second["error"]["code"] == -32600
    release()
    assert (await first)["result"]["content"][0]["text"] == "held"


async def test_upstream_ids_are_unique_integers_that_tell_the_relays_start(pod: Pod) -> None:
    client = await pod.connected()
    numbers = [(await client.text("stats"))["id"] for _ in range(3)]
    assert len(set(numbers)) == 3
    assert all(number >> 32 == 1 for number in numbers)


async def test_progress_goes_to_its_caller_with_the_callers_token_and_ends_with_the_answer(pod: Pod) -> None:
    first, second = await pod.connected(), await pod.connected()

    async def run(client: Client, token: object, tag: str) -> list[dict[str, object]]:
        message = body(
            "tools/call", 1, name="progress", arguments={"tag": tag}, _meta={"progressToken": token}
        )
        reply = await client.post(message)
        return events(reply.text)

    for got, token, tag in zip(
        await asyncio.gather(run(first, 1, "a"), run(second, "1", "b")), (1, "1"), ("a", "b"), strict=True
    ):
        *notes, answer = got
        assert [note["params"] for note in notes] == [
            {"progressToken": token, "progress": step, "message": tag} for step in range(3)
        ]
        assert answer["id"] == 1
    silent = await first.post(body("tools/call", 2, name="progress", arguments={"tag": "c"}))
    assert silent.headers["content-type"] == "application/json"


async def test_equal_progress_tokens_do_not_cross_and_late_progress_reaches_nobody(pod: Pod) -> None:
    first, second = await pod.connected(), await pod.connected()

    async def run(client: Client, tag: str, **meta: object) -> list[dict[str, Any]]:
        message = body("tools/call", 1, name="progress", arguments={"tag": tag}, _meta=meta)
        return events((await client.post(message, accept="text/event-stream")).text)

    async with first.stream() as one, second.stream() as two:
        tags = [f"{name}{number}" for number in range(10) for name in "ab"]
        for a, b in zip(tags[::2], tags[1::2], strict=True):
            told = await asyncio.gather(run(first, a, progressToken=1), run(second, b, progressToken=1))
            for (*notes, answer), tag in zip(told, (a, b), strict=True):
                assert {note["params"]["progressToken"] for note in notes} == {1}
                assert [note["params"]["message"] for note in notes] == [tag] * 3
                assert answer["id"] == 1
        assert len(await run(first, "c")) == 1  # it gave no token, so it hears of no progress
        assert (await second.call("echo", text="x"))["result"]  # all that came before it was routed
        assert (one.waiting(), two.waiting()) == (0, 0)
        assert not one.ended.is_set()
        assert not two.ended.is_set()
    metrics = (await pod.admin("GET", "/metrics")).text
    assert 'mcp_relay_messages_dropped_total{reason="progress_without_call"}' in metrics


@pytest.mark.parametrize("number", [5, "five"])
async def test_a_cancelled_request_is_answered_and_the_server_told_its_own_id(
    pod: Pod, number: object
) -> None:
    client = await pod.connected()
    call = asyncio.create_task(client.call("sleep", number, seconds=5, late=False))
    await pod.in_flight(1)
    await client.notify("notifications/cancelled", requestId=number, reason="enough")
    assert await call == {
        "jsonrpc": "2.0",
        "id": number,
        "error": {"code": -32603, "message": "Request cancelled"},
    }
    stats = await client.text("stats")
    assert len(stats["cancelled"]) == 1
    assert stats["cancelled"][0] >> 32 == 1


async def test_a_cancellation_before_its_request_is_kept_for_it(pod: Pod) -> None:
    client, other = await pod.connected(), await pod.connected()
    await client.notify("notifications/cancelled", requestId=5)
    assert (await other.call("echo", 5, text="x"))["result"]
    assert (await client.call("echo", 5, text="x"))["error"]["message"] == "Request cancelled"
    assert (await client.call("echo", 6, text="x"))["result"]


async def test_a_cancellation_after_the_answer_changes_nothing(pod: Pod) -> None:
    client = await pod.connected()
    await client.call("echo", 5, text="x")
    await client.notify("notifications/cancelled", requestId=5)
    assert (await client.call("echo", 5, text="again"))["result"]


async def test_an_overdue_call_is_answered_and_cancelled_and_its_late_answer_dropped(make_pod: Any) -> None:
    pod = await make_pod(call_timeout=1.0)
    client = await pod.connected()
    answer = await client.call("hold", 1)
    assert answer["error"] == {
        "code": -32001,
        "message": "MCP tool 'hold' on server 'demo' timed out after 1 seconds",
    }
    assert len((await client.text("stats"))["cancelled"]) == 1
    (await pod.holding(0))()

    async def dropped() -> bool:
        metrics = (await pod.admin("GET", "/metrics")).text
        return 'mcp_relay_messages_dropped_total{reason="late_answer"} 1.0' in metrics

    await eventually(dropped)
    assert (await client.call("echo", 1, text="mine"))["result"]["content"][0]["text"] == '"mine"'


async def test_what_the_server_does_not_offer_is_answered_by_the_relay(pod: Pod) -> None:
    client = await pod.connected()
    for method in ("prompts/list", "completion/complete", "server/discover", "nonsense", "tasks/get"):
        assert (await client.request(method))["error"]["code"] == -32601
    assert (await client.request("vendor/echo", value=[None, 1]))["result"] == {"value": [None, 1]}
    received = (await client.text("stats"))["received"]
    assert not {"prompts/list", "completion/complete", "server/discover", "nonsense"} & set(received)


async def test_params_null_reach_the_server_as_an_empty_object(pod: Pod) -> None:
    client = await pod.connected()
    reply = await client.post(b'{"jsonrpc":"2.0","params":null,"id":"p","method":"vendor/echo"}')
    assert reply.json() == {"jsonrpc": "2.0", "id": "p", "result": {}}


async def test_a_message_on_several_lines_stays_one_message(pod: Pod) -> None:
    client = await pod.connected()
    pretty = json.dumps(
        body("tools/call", 1, name="echo", arguments={"text": "a\u2028b"}), indent=2, ensure_ascii=False
    )
    reply = await client.post(pretty.encode())
    assert json.loads(reply.json()["result"]["content"][0]["text"]) == "a\u2028b"


async def test_a_vanished_client_does_not_hurt_the_others(pod: Pod, caplog: pytest.LogCaptureFixture) -> None:
    client, other = await pod.connected(), await pod.connected()
    call = asyncio.create_task(client.call("hold", 1))
    release = await pod.holding()
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert (await other.call("echo", text="x"))["result"]
    assert (await other.text("stats"))["cancelled"] == []  # going away is no cancellation
    release()
    await pod.in_flight(0)
    assert (await other.text("stats"))["initialize"] == 1
    assert [record for record in caplog.records if record.exc_info] == []
