"""What a server may do to harm the relay: each costs that server something, and nobody else."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from mcp_sidecar.core import pace
from mcp_sidecar.session import listing
from relaykit.fakelauncher import FakeLauncher, Json
from relaykit.pod import Pod
from relaykit.waiting import eventually

HUGE = b"9" * 5000


async def metric(pod: Pod, name: str, label: str) -> float:
    """One counter's value; 0 when it was never counted."""
    text = (await pod.admin("GET", "/metrics")).text
    start = f'mcp_relay_{name}_total{{reason="{label}"}} '
    return sum(float(line.removeprefix(start)) for line in text.splitlines() if line.startswith(start))


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":' + HUGE + b',"result":"' + b"x" * 70_000 + b'"}',
        b'{"jsonrpc":"2.0","result":{"x":"' + b"x" * 70_000 + b'"},"id":' + HUGE + b"}",
        b'{"jsonrpc":"2.0","id":' + HUGE + b',"result":{}}',
        b'{"jsonrpc":"2.0","id":' + HUGE + b',"method":"ping"}',
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":' + HUGE + b"}}",
        b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}',
        b"[" * 100_000,
        b'{"a":' * 90_000,
    ],
)
async def test_no_line_of_a_server_breaks_the_connection(
    bare_pod: Pod, launcher: FakeLauncher, line: bytes
) -> None:
    await bare_pod.relay()
    client = await bare_pod.connected()
    launcher.say(line)
    assert "result" in await client.call("any")
    assert launcher.connections == 1


async def test_a_line_that_meets_a_defect_of_the_relay_is_dropped_alone(
    bare_pod: Pod, launcher: FakeLauncher, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await bare_pod.relay()
    client = await bare_pod.connected()
    assert bare_pod.service is not None

    def defect(_frame: object) -> None:
        raise ZeroDivisionError

    inbound = bare_pod.service.relay.upstream._inbound
    monkeypatch.setitem(inbound._notices, "notifications/progress", defect)
    note = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}'
    launcher.say(note)
    launcher.say(note)
    assert "result" in await client.call("any")
    assert launcher.connections == 1
    assert await metric(bare_pod, "stdout_lines_dropped", "unreadable") == 2
    assert [record.message for record in caplog.records].count("line_unreadable") == 1


async def test_replies_to_a_server_that_does_not_read_are_bounded(tmp_path: Path) -> None:
    pod = Pod(tmp_path, max_message_bytes=50_000)
    launcher = FakeLauncher(pod.socket)
    await launcher.start()
    await pod.relay()
    client = await pod.connected()
    launcher.reads.clear()
    ping = b'{"jsonrpc":"2.0","id":"' + b"p" * 500 + b'","method":"ping"}'

    async def dropped() -> bool:
        launcher.say(b"\n".join([ping] * 1000))
        return await metric(pod, "messages_dropped", "server_not_reading") > 0

    await eventually(dropped, 20)
    refused = await client.call("any")
    assert "does not read its input" in refused["error"]["message"]
    launcher.reads.set()

    async def reads_again() -> bool:
        return "result" in await client.call("any")

    await eventually(reads_again)
    await pod.stop()
    await launcher.stop()


def page(tools: list[Any]) -> Any:
    """Answers tools/list with the same page, and always one more to come."""
    count = iter(range(10**9))
    return lambda _message: {"result": {"tools": tools, "nextCursor": str(next(count))}}


@pytest.mark.parametrize(
    ("tools", "read"),
    [([{"name": "t", "description": "d" * 1_000_000}] * 4, 36), ([{"name": "t"}] * 3000, 10_000), ([], 0)],
)
async def test_a_tool_list_without_end_is_read_up_to_a_limit(
    bare_pod: Pod, launcher: FakeLauncher, tools: list[Any], read: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MAX_PAGES", 20)
    launcher.answers["tools/list"] = page(tools)
    await bare_pod.relay()
    status = await bare_pod.until("Connected")
    async with asyncio.timeout(20):
        while status.tool_count is None:
            status = await bare_pod.status(status.revision, 5)
    assert status.error is not None
    assert (status.error.phase, status.error.reason) == ("ListTools", "ToolListTruncated")
    assert status.tool_count == read
    client = await bare_pod.connected()
    assert "result" in await client.call("any")


async def test_a_server_that_lists_no_tools_is_served_and_asked_again(
    bare_pod: Pod, launcher: FakeLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "PAGE_SECONDS", 0.2)
    monkeypatch.setattr(pace, "RETRY_FIRST_SECONDS", 0.2)
    launcher.answers["tools/list"] = lambda _message: None
    await bare_pod.relay()
    status = await bare_pod.until("Connected")
    async with asyncio.timeout(5):
        while status.error is None:
            status = await bare_pod.status(status.revision, 5)
    assert (status.state, status.error.phase, status.error.reason) == (
        "Connected", "ListTools", "ListToolsFailed",
    )  # fmt: skip
    assert status.tool_count is None
    client = await bare_pod.connected()
    assert "result" in await client.call("any")
    launcher.answers["tools/list"] = lambda _message: {"result": {"tools": [{"name": "late"}]}}
    async with asyncio.timeout(5):
        while status.tool_count is None:
            status = await bare_pod.status(status.revision, 5)
    assert (status.tools[0].name, status.error) == ("late", None)


async def test_a_tool_list_that_never_rests_is_read_ever_more_seldom(
    bare_pod: Pod, launcher: FakeLauncher
) -> None:
    count = iter(range(10**9))
    launcher.answers["tools/list"] = lambda _message: {"result": {"tools": [{"name": f"t{next(count)}"}]}}
    await bare_pod.relay()
    await bare_pod.until("Connected")

    async def flapped(seconds: float) -> int:
        before, end = next(count), asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end:
            launcher.say(b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')
            await asyncio.sleep(0.01)
        return next(count) - before - 1

    assert await flapped(1.5) <= 5


@pytest.mark.parametrize("depth", [100, 400, 900])
async def test_capabilities_nested_deeply_are_refused_or_shown_to_a_depth(
    bare_pod: Pod, launcher: FakeLauncher, depth: int
) -> None:
    nested: Json = {}
    for _ in range(depth):
        nested = {"a": nested}
    launcher.capabilities = {"tools": {}, "experimental": nested}
    await bare_pod.relay()
    if depth > 512:
        status = await bare_pod.until("Refused")
        assert status.error is not None
        assert status.error.reason == "InvalidInitializeResult"
        return
    status = await bare_pod.until("Connected")
    assert status.session is not None
    assert 10 < json.dumps(status.session.capabilities).count("{") <= 20
    assert "a" in (await bare_pod.connected()).initialized["result"]["capabilities"]["experimental"]


@pytest.mark.parametrize(("method", "phase"), [("initialize", "Initialize"), ("tools/list", "ListTools")])
async def test_an_answer_to_the_relay_itself_that_is_too_large_is_reported_at_once(
    bare_pod: Pod, launcher: FakeLauncher, method: str, phase: str
) -> None:
    def answer(message: Json) -> None:
        head = f'{{"jsonrpc":"2.0","id":{message["id"]},"result":{{"tools":["xxx'
        launcher.say({"event": "oversized", "bytes": 20_000_000, "head": head, "tail": 'xxx"]}}'})

    launcher.answers[method] = answer
    await bare_pod.relay()
    status = await bare_pod.status()
    async with asyncio.timeout(3):
        while status.error is None:
            status = await bare_pod.status(status.revision, 5)
    assert status.error.phase == phase
    assert "20000000 bytes is larger than the limit" in status.error.message


@pytest.mark.parametrize("mode", ["refuse", "leak", "leaklist"])
async def test_secrets_of_the_server_stand_neither_in_the_status_nor_in_the_log(
    make_pod: Any, mode: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SCRIPTED_SECRET", "hunter2-is-secret")
    pod = await make_pod(mode)
    status = await pod.until("Refused" if mode == "refuse" else "Connected")
    async with asyncio.timeout(5):
        while status.error is None and status.tool_count is None:
            status = await pod.status(status.revision, 5)
    text = status.model_dump_json()
    assert "hunter2" not in text
    assert "***" in text
    if mode == "leak":
        assert status.session is not None
        assert status.session.server_info == {"name": "scripted ***", "version": "1"}
        assert status.session.capabilities["experimental"] == {"***": {"key": "***"}}
        assert "***" in (status.tools[0].description or "")
        client = await pod.connected()
        assert "hunter2" in json.dumps(client.initialized)  # the server's clients get what it says
    told = [json.dumps(getattr(record, "fields", {})) for record in caplog.records]
    assert "hunter2" not in "".join(told)
    assert mode != "leak" or any("noise ***" in line for line in told)


async def test_words_that_nobody_could_search_for_secrets_are_withheld(
    bare_pod: Pod, launcher: FakeLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_sidecar.session.masker.PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(launcher, "_mask", lambda _message: None)
    launcher.answers["initialize"] = lambda _message: {"error": {"code": 1, "message": launcher.secret}}
    await bare_pod.relay()
    status = await bare_pod.until("Refused")
    assert status.error is not None
    assert launcher.secret not in status.error.message
    assert "withheld" in status.error.message
