"""What went wrong with other systems in the field, and no other test here looks at."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from relaykit.client import Json, body, events
from relaykit.fakelauncher import CAPABILITIES, HELLO, FakeLauncher
from relaykit.pod import Pod
from relaykit.waiting import eventually

MakePod = Callable[..., Awaitable[Pod]]

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
    for accept in ("application/json", "text/event-stream"):
        for method, result in (("tools/list", {"tools": described}), ("tools/call", text)):
            reply = await client.post(body(method, 1, name="a"), accept=accept)
            assert reply.headers["content-type"] == accept
            answer = reply.json() if accept == "application/json" else events(reply.text)[-1]
            assert answer["result"] == result


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


async def test_a_server_without_tools_is_never_asked_for_them_and_all_else_passes(
    pod: Pod, launcher: FakeLauncher
) -> None:
    launcher.capabilities = {"resources": {}, "prompts": {}}
    answers = {
        "resources/list": {"resources": [{"uri": "file://a", "name": "a"}]},
        "resources/read": {"contents": [{"uri": "file://a", "text": "x"}]},
        "prompts/list": {"prompts": [{"name": "p"}]},
        "prompts/get": {"messages": []},
    }
    for method, result in answers.items():
        launcher.answers[method] = lambda _message, result=result: {"result": result}  # type: ignore[misc]
    await pod.relay()
    status = await pod.until("Connected")
    assert (status.tool_count, status.tools, status.error) == (0, (), None)
    client = await pod.connected()
    for method, result in answers.items():
        assert (await client.request(method, uri="file://a", name="p"))["result"] == result
    assert (await client.request("tools/list"))["error"]["code"] == -32601
    assert "tools/list" not in launcher.received


async def test_words_on_stdout_that_are_no_messages_are_logged_cut_and_only_the_first(
    pod: Pod, launcher: FakeLauncher, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(_message: Json) -> Json:
        for number in range(100):
            launcher.say(b"Starting %d %b" % (number, b"x" * 5000))
        return introduced()

    launcher.answers["initialize"] = answer
    await pod.relay()
    assert (await pod.until("Connected")).handshakes == 1

    async def logged() -> bool:
        return len(_noise(caplog)) >= 20

    await eventually(logged)
    assert (await (await pod.connected()).call("any"))["result"] == {}
    said = _noise(caplog)
    assert said[0].startswith("Starting 0 xxx")
    assert len(said) == 20
    assert max(map(len, said)) <= 201


def _noise(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.fields["line"] for record in caplog.records if record.message == "stdout_noise"]  # type: ignore[attr-defined]


async def test_an_initialize_is_never_cancelled_however_long_it_takes(
    pod: Pod, launcher: FakeLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_sidecar.session.relay.READY_SECONDS", 0.3)
    pod.configure(startup_timeout=0.5, call_timeout=0.2)
    asked: list[Json] = []
    launcher.answers["initialize"] = asked.append  # which gives None: no answer
    await pod.relay()
    client = pod.client()
    assert "error" in (await client.post(body("initialize", 1))).json()
    status = await pod.status()
    async with asyncio.timeout(10):
        while status.error is None:
            status = await pod.status(status.revision, 5)
    assert status.error.reason == "StartupTimeout"
    assert launcher.received == ["initialize"]
    launcher.say(json.dumps({"jsonrpc": "2.0", "id": asked[0]["id"], **introduced()}).encode())
    assert (await pod.until("Connected")).error is None
    await client.connect()
    assert (await client.call("any"))["result"] == {}
    assert launcher.received.count("initialize") == 1
    assert "notifications/cancelled" not in launcher.received


async def test_calls_that_the_end_of_their_process_broke_off_are_not_given_to_the_next_one(
    pod: Pod, launcher: FakeLauncher
) -> None:
    launcher.answers["tools/call"] = lambda _message: None
    await pod.relay()
    client = await pod.connected()
    calls = [asyncio.create_task(client.call("any")) for _ in range(3)]
    await pod.in_flight(3)
    launcher.say({"event": "exit", "exitCode": 137, "signal": "SIGKILL", "reason": "Signaled"})
    for answer in await asyncio.gather(*calls):
        assert answer["error"]["data"]["outcome"] == "unknown"
    del launcher.answers["tools/call"]
    launcher.greeting = [{**HELLO, "incarnation": "next"}]
    launcher.drop()

    async def introduced_again() -> bool:
        return launcher.received.count("initialize") == 2

    await eventually(introduced_again)
    await pod.until("Connected")
    assert (await client.call("any"))["result"] == {}
    assert launcher.received.count("tools/call") == 4


async def test_a_connection_that_is_away_for_a_while_is_made_again_to_the_same_process(
    pod: Pod, launcher: FakeLauncher
) -> None:
    await pod.relay()
    client = await pod.connected()
    before = await pod.until("Connected")
    launcher.greeting = []
    launcher.drop()
    await pod.until("Dropped")
    waiting = asyncio.create_task(client.call("any"))
    assert not (await asyncio.wait([waiting], timeout=1.5))[0]
    launcher.say(HELLO)
    assert (await waiting)["result"] == {}
    after = await pod.until("Connected")
    assert (after.process, after.session, after.handshakes) == (before.process, before.session, 1)
    assert (after.error, after.exit) == (None, None)
    assert launcher.received.count("initialize") == 1


@pytest.mark.parametrize(
    "command",
    [[sys.executable, "-c", "raise SystemError('no database')"], ["/no/such/server"]],
    ids=["a trace and exit 1", "no such command"],
)
async def test_a_client_hears_at_once_of_a_server_that_cannot_start(
    make_pod: MakePod, command: list[str]
) -> None:
    pod = await make_pod(command=command)
    async with asyncio.timeout(10):  # far below the time that a start may take
        reply = await pod.client().post(body("initialize", 1))
    error = reply.json()["error"]
    assert (error["code"], error["data"]["reason"]) == (-32000, "server_unavailable")
    assert "is not running" in error["message"]


@pytest.mark.parametrize("met", [False, True])
async def test_who_waits_for_a_launcher_that_has_ended_is_told_so(
    pod: Pod, launcher: FakeLauncher, met: bool
) -> None:
    launcher.greeting = []
    if not met:
        await launcher.stop()
    assert pod.socket.exists()
    await pod.relay()
    waiting = asyncio.create_task(pod.client().post(body("initialize", 1)))
    if met:
        assert not (await asyncio.wait([waiting], timeout=0.2))[0]
        await launcher.stop()
    async with asyncio.timeout(10):
        error = (await waiting).json()["error"]
    assert error["message"] == "MCP server 'demo' is not running: its launcher has ended"
    launcher.greeting = [HELLO]
    await launcher.start()
    assert (await pod.until("Connected")).error is None
    assert (await (await pod.connected()).call("any"))["result"] == {}


async def test_the_end_of_a_pod_with_a_call_and_an_idle_stream_is_orderly_though_told_twice(
    make_pod: MakePod,
) -> None:
    pod = await make_pod(relay="process")
    client = await pod.connected()
    call = asyncio.create_task(client.call("hold", 1))
    release = await pod.holding()
    assert pod.launcher is not None
    assert pod.process is not None
    async with client.stream() as stream:
        for _ in range(2):
            pod.launcher.send_signal(signal.SIGTERM)
        await pod.until("Terminating", 5)
        assert (await pod.admin("GET", "/readyz")).status_code == 503
        release()
        assert (await call)["result"]["content"][0]["text"] == "held"
        async with asyncio.timeout(10):
            await stream.ended.wait()
    assert await asyncio.to_thread(pod.launcher.wait, 15) == 0
    for _ in range(2):
        pod.process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(10):
        assert await pod.process.wait() == 0


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
