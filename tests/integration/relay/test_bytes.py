import asyncio
import base64
import json
from typing import Any

import pytest

from relaykit.client import body, events
from relaykit.pod import Pod

MIB = 1024 * 1024


def written(data: bytes | str) -> str:
    return base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode()


async def test_lines_that_are_no_messages_are_skipped(make_pod: Any) -> None:
    pod = await make_pod("noise")
    client = await pod.connected()
    assert (await client.call("echo", text="x"))["result"]
    text = (await pod.admin("GET", "/metrics")).text
    assert 'mcp_relay_stdout_lines_dropped_total{reason="noise"} 4.0' in text


async def test_characters_split_over_writes_arrive_whole(pod: Pod) -> None:
    client = await pod.connected()
    text = "é€😀漢\u200b\u3000\u2028"
    line = f'{{"jsonrpc":"2.0","id":ID,"result":{{"text":"{text}"}}}}\n'
    assert (await client.call("raw", data=written(line), slowly=True))["result"] == {"text": text}


async def test_bytes_that_are_not_utf8_are_replaced_and_the_call_is_answered(pod: Pod) -> None:
    client = await pod.connected()
    line = b'{"jsonrpc":"2.0","id":ID,"result":{"text":"a\xffb"}}\n'
    assert (await client.call("raw", data=written(line)))["result"] == {"text": "a�b"}


@pytest.mark.parametrize(
    "line",
    [
        '{"result":{"x":{"id":7,"jsonrpc":"2.0"}},"id":ID,"jsonrpc":"2.0"}',
        '{"id":"ID","jsonrpc":"2.0","result":{"x":{"id":7,"jsonrpc":"2.0"}}}',
        ' { "jsonrpc" : "2.0" , "result" : {"x":{"id":7,"jsonrpc":"2.0"}} , "id" : ID } \r',
        '{"jsonrpc":"2.0","\\u0069d":ID,"result":{"x":{"id":7,"jsonrpc":"2.0"}}}',
    ],
)
async def test_an_answer_may_be_written_in_any_order_and_spacing(pod: Pod, line: str) -> None:
    client = await pod.connected()
    answer = await client.call("raw", "mine", data=written(line + "\n"))
    assert (answer["id"], answer["result"]) == ("mine", {"x": {"id": 7, "jsonrpc": "2.0"}})


@pytest.mark.parametrize("tool", ["big", "tail"])
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_a_large_result_passes_unchanged(pod: Pod, tool: str, accept: str) -> None:
    client = await pod.connected()
    message = body("tools/call", "big", name=tool, arguments={"n": 2 * MIB, "char": "ü"})
    reply = await client.post(message, accept=accept)
    answer = reply.json() if accept.endswith("json") else events(reply.text)[-1]
    assert answer["id"] == "big"
    assert answer["result"]["content"][0]["text"] == "ü" * (2 * MIB)


async def test_others_are_served_while_a_large_result_passes(pod: Pod) -> None:
    client, other = await pod.connected(), await pod.connected()
    large = asyncio.create_task(client.call("big", n=12 * MIB))
    while not large.done():
        assert (await other.call("echo", text="x"))["result"]
    assert len((await large)["result"]["content"][0]["text"]) == 12 * MIB


@pytest.mark.parametrize("tool", ["big", "tail"])
async def test_only_the_call_whose_answer_is_too_large_fails(make_pod: Any, tool: str) -> None:
    pod = await make_pod(max_message_bytes=100_000)
    client = await pod.connected()
    answer = await client.call(tool, n=300_000)
    assert answer["error"]["code"] == -32000
    assert "100000 bytes" in answer["error"]["message"]
    assert answer["error"]["data"]["reason"] == "message_too_large"
    assert (await client.call("echo", text="x"))["result"]


@pytest.mark.parametrize("tool", ["big", "tail"])
async def test_the_right_call_of_several_fails_when_its_answer_is_too_large(make_pod: Any, tool: str) -> None:
    pod = await make_pod(max_message_bytes=100_000)
    client, other = await pod.connected(), await pod.connected()
    held = asyncio.create_task(other.call("hold", 1))
    release = await pod.holding()
    answer = await client.call(tool, n=300_000)
    assert answer["error"]["data"]["reason"] == "message_too_large"
    release()
    assert (await held)["result"]["content"][0]["text"] == "held"


async def test_a_line_without_end_costs_no_memory_and_only_itself(make_pod: Any) -> None:
    pod = await make_pod(max_message_bytes=100_000, call_timeout=1.0)
    client = await pod.connected()
    lost = await client.call("raw", data=written("x"), times=300_000)
    assert "timed out" in lost["error"]["message"]
    glued = await client.call("echo", text="its answer ends the endless line")
    assert "timed out" in glued["error"]["message"]  # whose answer that line was is not guessed
    assert (await client.call("echo", text="x"))["result"]


async def test_a_flood_on_stderr_blocks_nothing(pod: Pod) -> None:
    client = await pod.connected()
    assert (await client.call("flood", bytes=1_000_000))["result"]


async def test_a_server_that_reads_slowly_delays_only_its_calls(pod: Pod) -> None:
    client = await pod.connected()
    block = asyncio.create_task(client.call("block", 1, seconds=0.5))
    large = body("tools/call", 2, name="echo", arguments={"text": "z" * MIB})
    replies = await asyncio.gather(*(client.post({**large, "id": 10 + n}) for n in range(4)))
    assert [len(json.loads(r.json()["result"]["content"][0]["text"])) for r in replies] == [MIB] * 4
    assert (await block)["result"]


async def test_an_oversized_notification_ends_no_call(make_pod: Any) -> None:
    pod = await make_pod(max_message_bytes=100_000)
    client = await pod.connected()
    answer = await client.call("unrelated", method="notifications/message", size=300_000)
    assert answer["result"]["content"][0]["text"] == "sent"


@pytest.mark.parametrize(
    ("size", "end"),
    [
        (10, b'"}, , garbage }'),
        (10, b'"} garbage'),
        (10, b'"}}}'),
        (70_000, b'"}, , garbage }'),
        (70_000, b'"} garbage'),
    ],
)
async def test_an_answer_that_is_no_json_ends_its_call_with_an_error(pod: Pod, size: int, end: bytes) -> None:
    client = await pod.connected()
    line = b'{"jsonrpc":"2.0","id":ID,"result":{"text":"%b%b\n' % (b"x" * size, end)
    answer = await client.call("raw", data=written(line))
    assert answer["error"]["data"] == {"reason": "invalid_json"}
    assert (await client.call("echo", text="x"))["result"]


@pytest.mark.parametrize("size", [10, 70_000])
async def test_bytes_that_are_not_utf8_are_replaced_in_answers_of_any_size(pod: Pod, size: int) -> None:
    client = await pod.connected()
    line = b'{"jsonrpc":"2.0","id":ID,"result":{"text":"%b\xff"}}\n' % (b"x" * size)
    assert (await client.call("raw", data=written(line)))["result"] == {"text": "x" * size + "\ufffd"}
