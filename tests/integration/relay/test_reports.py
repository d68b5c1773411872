"""What went wrong with other systems in the field, and no other test here looks at."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from relaykit.client import Json, body, events
from relaykit.fakelauncher import CAPABILITIES, FakeLauncher
from relaykit.pod import Pod

KIB, MIB = 1024, 1024 * 1024
STRANGE: list[Json] = [
    {"name": "text", "inputSchema": {"type": "string"}},
    {"name": "none"},
    {"name": "cyclic", "inputSchema": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}},
    {"name": "misplaced", "inputSchema": {"type": "object", "properties": {"required": ["x"]}}},
    {"name": "large", "inputSchema": {"type": "object", "description": "x" * (200 * KIB)}},
    {"name": "a name with blanks " * 11, "inputSchema": None, "description": 5},
    {"name": "fine", "inputSchema": {"type": "object"}, "vendor": [1e400, None, 12345678901234567890]},
]


@pytest.fixture
async def pod(tmp_path: Path) -> AsyncIterator[Pod]:
    """A relay whose launcher is `launcher`; not started yet."""
    made = Pod(tmp_path)
    yield made
    await made.stop()


@pytest.fixture
async def launcher(pod: Pod) -> AsyncIterator[FakeLauncher]:
    fake = FakeLauncher(pod.socket)
    await fake.start()
    yield fake
    await pod.stop()
    await fake.stop()


def introduced(**more: Any) -> Json:
    info = {"name": "fake", "version": "1"}
    result = {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "serverInfo": info, **more}
    return {"result": result}


async def test_long_lines_pass_from_the_handshake_on(pod: Pod, launcher: FakeLauncher) -> None:
    instructions, described = "i" * (129 * KIB), [{"name": "a", "description": "d" * (300 * KIB)}]
    text = {"content": [{"type": "text", "text": "r" * (12 * MIB)}]}
    launcher.answers["initialize"] = lambda _message: introduced(instructions=instructions)
    launcher.answers["tools/list"] = lambda _message: {"result": {"tools": described}}
    launcher.answers["tools/call"] = lambda _message: {"result": text}
    await pod.relay()
    client = await pod.connected()
    assert client.initialized["result"]["instructions"] == instructions
    assert (await client.request("tools/list"))["result"]["tools"] == described
    for accept in ("application/json", "text/event-stream"):
        reply = await client.post(body("tools/call", 1, name="a"), accept=accept)
        assert reply.headers["content-type"] == accept
        answer = reply.json() if accept == "application/json" else events(reply.text)[-1]
        assert answer["result"] == text


async def test_tools_with_malformed_schemas_are_passed_on_as_they_came(
    pod: Pod, launcher: FakeLauncher
) -> None:
    launcher.answers["tools/list"] = lambda _message: {"result": {"tools": STRANGE}}
    launcher.answers["tools/call"] = lambda message: {"result": {"called": message["params"]["name"]}}
    await pod.relay()
    client = await pod.connected()
    assert (await client.request("tools/list"))["result"]["tools"] == STRANGE
    for tool in STRANGE:
        assert (await client.call(tool["name"]))["result"] == {"called": tool["name"]}
    status = await pod.until("Connected")
    while status.tool_count is None:
        status = await pod.status(status.revision, 5)
    assert (status.tool_count, status.error) == (len(STRANGE), None)
    assert [tool.name for tool in status.tools] == [tool["name"] for tool in STRANGE]


async def test_a_list_that_was_declared_and_is_not_offered_is_no_error(
    pod: Pod, launcher: FakeLauncher
) -> None:
    launcher.answers["tools/list"] = lambda _message: {"error": {"code": -32601, "message": "no"}}
    await pod.relay()
    status = await pod.until("Connected")
    while status.tool_count is None:
        status = await pod.status(status.revision, 5)
    assert (status.tool_count, status.tools, status.error) == (0, (), None)


async def test_streams_give_no_event_ids_and_nothing_is_told_again(pod: Pod, launcher: FakeLauncher) -> None:
    launcher.capabilities = {"tools": {"listChanged": True}}
    launcher.answers["tools/call"] = lambda _message: {"result": {}}
    await pod.relay()
    client, other = await pod.connected(), await pod.connected()
    changed = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
    async with client.stream() as stream:
        launcher.say(changed)
        assert (await stream.next())["method"] == "notifications/tools/list_changed"
    reply = await client.post(body("tools/call", 1, name="a"), accept="text/event-stream")
    assert not any(line.startswith("id:") for line in reply.text.splitlines())
    for known in ("1", "unknown", other.sid):
        headers = client.headers(last_event_id=known, accept="text/event-stream")
        async with client.http.stream("GET", client.url, headers=headers) as again:
            launcher.say(b'{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}')
            lines = again.aiter_lines()
            seen = [line async for line in _until(lines, "prompts")]
            assert again.status_code == 200
            assert [line for line in seen if line.startswith("id:") or "tools" in line] == []


async def _until(lines: AsyncIterator[str], text: str) -> AsyncIterator[str]:
    async for line in lines:
        yield line
        if text in line:
            return
