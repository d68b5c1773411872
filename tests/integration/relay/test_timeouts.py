"""A call that the server does not answer: its limit, and what progress changes about it."""

import asyncio
import json
import time
from typing import Any

import pytest

from mcp_operator.core.api import MCPServerSpec
from mcp_sidecar.settings import Settings
from relaykit.client import events
from relaykit.fakelauncher import FakeLauncher, Json
from relaykit.pod import Pod
from relaykit.waiting import eventually

MESSAGE = "MCP tool 'sleep' on server 'demo' timed out after 3 seconds"


def test_the_limit_of_a_call_is_thirty_seconds_unless_it_is_set() -> None:
    assert Settings.__dataclass_fields__["call_timeout"].default == 30.0
    spec = MCPServerSpec.model_validate({"image": "x"})
    assert (spec.session.call_timeout_seconds, spec.session.max_call_seconds) == (30, 0)


async def test_fifty_callers_of_a_tool_that_hangs_hear_so_in_time_and_nobody_else_waits(
    make_pod: Any,
) -> None:
    pod = await make_pod(call_timeout=3.0)
    callers = [await pod.connected() for _ in range(10)]
    other = await pod.connected()
    began = time.monotonic()
    calls = [
        asyncio.create_task(caller.call("sleep", number, seconds=3600))
        for caller in callers
        for number in range(5)
    ]
    while not any(call.done() for call in calls):
        assert (await other.text("echo", text="here")) == "here"
    answers = await asyncio.gather(*calls)
    assert time.monotonic() - began < 15
    assert {answer["error"]["message"] for answer in answers} == {MESSAGE}
    assert {answer["error"]["code"] for answer in answers} == {-32001}
    assert sorted(answer["id"] for answer in answers) == sorted(list(range(5)) * 10)
    stats = await other.text("stats")
    assert len(set(stats["cancelled"])) == 50
    assert stats["initialize"] == 1


async def came(calls: list[Json]) -> bool:
    return bool(calls)


def progress(launcher: FakeLauncher, calls: list[Json]) -> None:
    """Report progress with the first call."""
    number = calls[0]["params"]["_meta"]["progressToken"]
    params = {"progressToken": number, "progress": 1}
    note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
    launcher.say(json.dumps(note).encode())


@pytest.mark.parametrize(
    ("usual", "limit", "shown"), [(0.6, 0.0, "0.6"), (0.6, 0.5, "0.6"), (2.5, 4.5, "4.5")]
)
async def test_progress_extends_a_call_up_to_its_hard_limit_where_that_is_allowed(
    bare_pod: Pod, launcher: FakeLauncher, usual: float, limit: float, shown: str
) -> None:
    bare_pod.configure(call_timeout=usual, max_call=limit)
    calls: list[Json] = []
    launcher.answers["tools/call"] = calls.append  # which gives None: no answer
    await bare_pod.relay()
    client = await bare_pod.connected()
    began = time.monotonic()
    params = {"name": "slow", "arguments": {}, "_meta": {"progressToken": "mine"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    call = asyncio.create_task(client.post(message))
    await eventually(lambda: came(calls))
    while not call.done():
        progress(launcher, calls)
        await asyncio.wait([call], timeout=0.1)
    answer = events((await call).text)[-1]
    text = f"MCP tool 'slow' on server 'demo' timed out after {shown} seconds"
    assert answer["error"]["message"] == text
    assert time.monotonic() - began >= float(shown)
    assert "notifications/cancelled" in launcher.received


async def test_a_call_whose_progress_stops_ends_after_the_usual_limit(
    bare_pod: Pod, launcher: FakeLauncher
) -> None:
    bare_pod.configure(call_timeout=0.5, max_call=60.0)
    calls: list[Json] = []
    launcher.answers["tools/call"] = calls.append  # which gives None: no answer
    await bare_pod.relay()
    client = await bare_pod.connected()
    params = {"name": "slow", "arguments": {}, "_meta": {"progressToken": 7}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    began = time.monotonic()
    call = asyncio.create_task(client.post(message))
    await eventually(lambda: came(calls))
    progress(launcher, calls)
    answer = events((await call).text)[-1]
    assert "timed out after 0.5 seconds" in answer["error"]["message"]
    assert time.monotonic() - began < 20
