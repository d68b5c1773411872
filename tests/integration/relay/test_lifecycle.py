import asyncio
import json
import shlex
import signal
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from mcp_relay_api.status import RelayStatus
from mcp_sidecar.session import progress, upstream
from relaykit.client import body
from relaykit.pod import ADMIN, SCRIPTED, Pod, kill_process
from relaykit.waiting import eventually, stopwatch


async def test_a_status_tells_process_session_and_tools(pod: Pod) -> None:
    status = await pod.status()
    assert status.process is not None
    assert status.session is not None
    assert status.session.protocol_version == "2025-11-25"
    assert status.session.server_info["name"] == "scripted"
    assert (status.session.adopted, status.handshakes, status.error, status.exit) == (False, 1, None, None)
    assert status.tool_count == len(status.tools) == 22
    assert status.tools_digest is not None
    assert abs(status.process.start_time - time.time()) < 30


async def test_session_and_tools_appear_in_one_revision(
    make_pod: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream, "HOLD_SECONDS", 5.0)  # a server on a busy machine may be slow to list them
    pod = await make_pod()
    status = await pod.until("Connected")
    assert status.tool_count == 22


async def test_a_status_is_awaited_and_comes_at_once_when_it_is_new(pod: Pod) -> None:
    status = await pod.status()
    started = time.monotonic()
    assert (await pod.status(status.revision, 0.3)).revision == status.revision
    assert time.monotonic() - started >= 0.3
    assert (await pod.status(status.revision - 1, 5)).revision == status.revision
    other = await pod.admin("GET", f"/status?after={status.revision}&wait=5&instance=other", **ADMIN)
    assert other.json()["instance"] == status.instance
    waiting = asyncio.create_task(pod.status(status.revision, 5))
    kill_process(status)
    assert (await waiting).revision > status.revision
    assert time.monotonic() - started < 3


async def test_a_status_that_is_awaited_gives_signs_of_life_before_it_comes(pod: Pod) -> None:
    status = await pod.status()
    path = f"/status?after={status.revision}&instance={status.instance}"
    quiet = await pod.admin("GET", f"{path}&wait=0.5&beat=0.1", **ADMIN)
    assert quiet.headers["content-type"] == "application/json"
    assert RelayStatus.model_validate_json(quiet.content) == status
    seen = b""
    async with (
        httpx.AsyncClient(trust_env=False, timeout=20) as http,
        http.stream("GET", f"{pod.admin_url}{path}&wait=20&beat=0.1", headers=ADMIN) as waiting,
    ):
        async for part in waiting.aiter_bytes():
            if seen.count(b"\n") < 3 <= (seen + part).count(b"\n"):
                kill_process(status)
            seen += part
    assert seen[:3] == b"\n\n\n"
    assert json.loads(seen)["revision"] > status.revision
    assert (await pod.admin("GET", f"{path}&wait=1&beat=x", **ADMIN)).status_code == 400


async def test_the_number_of_clients_is_reported_in_few_revisions(pod: Pod) -> None:
    before = await pod.status()
    for _ in range(20):
        await pod.connected()
    after = await pod.status(before.revision, 5)
    while after.clients < 20:
        after = await pod.status(after.revision, 5)
    assert after.revision <= before.revision + 4  # one a second


async def test_two_thousand_tools_are_counted_and_some_shown(make_pod: Any) -> None:
    pod = await make_pod("lists")
    status = await pod.until("Connected")
    async with asyncio.timeout(5):
        while status.tool_count is None:
            status = await pod.status(status.revision, 5)
    assert (status.tool_count, len(status.tools)) == (2000, 128)
    assert max(len(tool.description or "") for tool in status.tools) == 256


async def test_a_server_without_tools_is_not_asked_for_them(make_pod: Any) -> None:
    pod = await make_pod("resources")
    status = await pod.until("Connected")
    assert (status.tool_count, status.tools, status.error) == (0, (), None)
    client = await pod.connected()
    assert (await client.call("echo"))["error"]["code"] == -32601
    assert (await client.request("resources/list"))["error"]["data"] == {"method": "resources/list"}


async def test_the_death_of_the_process_answers_all_open_calls_at_once(pod: Pod) -> None:
    clients = [await pod.connected() for _ in range(3)]
    status = await pod.status()
    calls = [asyncio.create_task(client.call("sleep", 1, seconds=20)) for client in clients]
    await pod.in_flight(3)
    async with stopwatch() as passed:
        kill_process(status)
        answers = await asyncio.gather(*calls)
        assert passed() < 0.5
    for answer in answers:
        assert answer["error"]["code"] == -32000
        assert answer["error"]["data"]["outcome"] == "unknown"
        assert "SIGKILL" in answer["error"]["message"]
    after = await pod.until("Exited", 1)
    assert after.exit is not None
    assert (after.exit.exit_code, after.exit.signal, after.exit.reason) == (137, "SIGKILL", "Signaled")
    assert after.error is not None
    assert (after.error.phase, after.error.reason, after.tool_count) == ("Process", "Signaled", None)
    assert (await pod.admin("GET", "/readyz")).status_code == 503
    refused = await clients[0].call("echo", text="x")
    assert "is not running" in refused["error"]["message"]
    assert "is not running" in (await pod.client().post(body("initialize", 1))).json()["error"]["message"]


async def test_a_clean_exit_is_an_end_too(pod: Pod) -> None:
    client = await pod.connected()
    answer = await client.call("exit", code=0)
    assert "exited with code 0" in answer["error"]["message"]
    assert (await pod.until("Exited", 1)).exit is not None


@pytest.mark.parametrize(
    ("mode", "reason", "words"),
    [
        ("refuse", "InitializeRefused", "not today"),
        ("version", "UnsupportedProtocolVersion", "2023-01-01"),
        ("empty", "InvalidInitializeResult", "protocolVersion"),
    ],
)
async def test_a_refused_handshake_is_reported_with_its_reason(
    make_pod: Any, mode: str, reason: str, words: str
) -> None:
    pod = await make_pod(mode)
    status = await pod.until("Refused")
    assert status.error is not None
    assert (status.error.phase, status.error.reason) == ("Initialize", reason)
    assert words in status.error.message
    reply = await pod.client().post(body("initialize", 1))
    assert words in reply.json()["error"]["message"]


async def test_a_server_that_dies_during_the_handshake_answers_the_waiting_client(make_pod: Any) -> None:
    pod = await make_pod("exit")
    reply = await pod.client().post(body("initialize", 1))
    assert "exited with code 3" in reply.json()["error"]["message"]
    status = await pod.until("Exited", 1)
    assert status.exit is not None
    assert "no licence" in status.exit.stderr_tail
    assert status.error is not None
    assert "before it answered initialize" in status.error.message


async def test_a_silent_server_stays_connecting_and_the_overdue_start_is_reported_once(make_pod: Any) -> None:
    pod = await make_pod("nothing", startup_timeout=1.0)
    status = await pod.status()
    async with asyncio.timeout(5):
        while status.error is None:
            status = await pod.status(status.revision, 5)
    assert (status.state, status.error.phase, status.error.reason) == (
        "Connecting",
        "Initialize",
        "StartupTimeout",
    )
    assert (await pod.status(status.revision, 0.3)).revision == status.revision


async def test_a_slow_start_tells_what_it_wrote_to_stderr_last_until_it_is_over(
    make_pod: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.05)
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.05)
    monkeypatch.setenv("DEPLOY_KEY", "sesame-open")
    gate = tmp_path / "downloaded"
    script = f"echo Downloading with sesame-open >&2; until [ -e {gate} ]; do sleep 0.05; done; exec "
    server = shlex.join([sys.executable, str(SCRIPTED), "answer"])
    pod = await make_pod(command=["sh", "-c", script + server])
    status = await pod.status()
    async with asyncio.timeout(10):
        while not status.progress:
            status = await pod.status(status.revision, 5)
    assert (status.state, status.progress) == ("Connecting", "Downloading with ***")
    assert (await pod.status(status.revision, 0.3)).revision == status.revision
    gate.touch()
    assert (await pod.until("Connected")).progress == ""


async def test_calls_wait_for_the_handshake_but_not_for_ever(
    make_pod: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_sidecar.session.relay.READY_SECONDS", 0.3)
    pod = await make_pod("nothing")
    reply = await pod.client().post(body("initialize", 1))
    assert reply.json()["error"]["data"] == {"reason": "server_unavailable", "state": "Connecting"}
    assert "still Connecting after 0.3 seconds" in reply.json()["error"]["message"]


async def test_a_hundred_clients_at_the_moment_of_the_start_all_get_in(make_pod: Any) -> None:
    pod = await make_pod()
    clients = await asyncio.gather(*(pod.connected() for _ in range(100)))
    answers = await asyncio.gather(*(client.call("echo", text="x") for client in clients))
    assert all("result" in answer for answer in answers)
    assert (await clients[0].text("stats"))["initialize"] == 1


async def test_a_dropped_connection_is_made_again_to_the_same_session(pod: Pod) -> None:
    client = await pod.connected()
    before = await pod.status()
    call = asyncio.create_task(client.call("hold", 1))
    release = await pod.holding()
    assert (await pod.admin("POST", "/reconnect", **ADMIN)).status_code == 202

    async def dropped() -> bool:
        metrics = (await pod.admin("GET", "/metrics")).text
        return 'mcp_relay_upstream_events_total{event="connection_lost"} 1.0' in metrics

    await eventually(dropped)
    release()
    assert (await call)["result"]["content"][0]["text"] == "held"
    after = await pod.until("Connected")
    assert (after.process, after.session, after.handshakes) == (before.process, before.session, 1)
    assert after.tool_count == before.tool_count
    assert (await client.text("stats"))["initialize"] == 1


async def test_a_server_that_closes_its_output_is_reported_and_its_calls_answered(pod: Pod) -> None:
    client = await pod.connected()
    answer = await client.call("close")
    assert "closed its stdout" in answer["error"]["message"]
    status = await pod.until("Dropped", 2)
    assert status.error is not None
    assert (status.error.phase, status.error.reason, status.exit) == ("Process", "StdoutClosed", None)
    assert "closed its stdout" in (await client.call("echo"))["error"]["message"]


@pytest.mark.parametrize("relay", ["inside", "process"])
async def test_a_server_that_closed_its_output_is_never_taken_for_connected_again(
    make_pod: Any, relay: str
) -> None:
    pod = await make_pod(relay=relay)
    client = await pod.connected()
    await client.call("close")
    before = await pod.until("Dropped", 2)
    if relay == "process":  # a new relay did not see it happen
        await pod.kill_relay()
        await pod.spawn_relay()
        before = await pod.until("Dropped", 2)
    for _ in range(3):
        assert (await pod.admin("POST", "/reconnect", **ADMIN)).status_code == 202
        after = await pod.status(before.revision, 0.3)
        assert (after.state, after.since, after.error) == ("Dropped", before.since, before.error)
    assert "closed its stdout" in (await client.call("echo"))["error"]["message"]
    assert before.handshakes == 1


async def test_a_launcher_that_is_gone_answers_open_calls(pod: Pod) -> None:
    client = await pod.connected()
    call = asyncio.create_task(client.call("sleep", 1, seconds=20))
    await pod.in_flight(1)
    assert pod.launcher is not None
    async with stopwatch() as passed:
        pod.launcher.kill()
        assert (await call)["error"]["data"]["outcome"] == "unknown"
        assert passed() < 0.5
    assert (await pod.until("Dropped", 1)).error is not None


async def test_a_killed_relay_is_replaced_and_the_session_goes_on(make_pod: Any) -> None:
    pod = await make_pod(relay="process")
    client = await pod.connected()
    await client.request("logging/setLevel", level="error")
    await client.request("resources/subscribe", uri="file://a")
    deleted = await pod.connected()
    await deleted.delete()
    before = await pod.until("Connected")
    await pod.kill_relay()
    started = time.monotonic()
    await pod.spawn_relay()
    assert (await client.call("echo", text="same session"))["result"]
    assert time.monotonic() - started < 5  # `make bench` asks for 2 s, of a machine that is not busy
    after = await pod.until("Connected")
    assert after.instance != before.instance
    assert after.process == before.process
    assert after.session is not None
    assert (after.session.adopted, after.handshakes) == (True, 1)
    stats = await client.text("stats")
    assert (stats["initialize"], stats["id"] >> 32) == (1, 2)
    assert (await deleted.post(body("ping", 1))).status_code == 404
    async with client.stream() as stream:
        await client.call("updated", uri="file://a")
        assert (await stream.next())["method"] == "notifications/resources/updated"
        assert stream.waiting() == 0
    await client.call("log", level="info")
    assert client.notes == []


async def test_a_relay_killed_during_the_handshake_waits_for_its_answer(make_pod: Any) -> None:
    pod = await make_pod("nothing", relay="process")
    status = await pod.status()
    async with asyncio.timeout(5):
        while status.process is None:
            status = await pod.status(status.revision, 5)
    await pod.kill_relay()
    await pod.spawn_relay()
    status = await pod.status()  # of the new one
    async with asyncio.timeout(5):
        while status.process is None:
            status = await pod.status(status.revision, 5)
    assert (status.state, status.handshakes) == ("Connecting", 1)


async def test_a_session_goes_on_with_a_new_process_in_a_new_pod(make_pod: Any) -> None:
    first, second = await make_pod(), await make_pod()
    client = await first.connected()
    await second.until("Connected")
    client.url = second.url
    async with client.stream() as stream:
        assert (await client.call("echo", text="x"))["result"]
        # The process of the second pod is younger than the session or as old: only a younger one is news.
        assert stream.waiting() <= 1


async def test_the_end_of_the_pod_lets_running_calls_finish(pod: Pod) -> None:
    client = await pod.connected()
    call = asyncio.create_task(client.call("hold", 1))
    release = await pod.holding()
    async with client.stream() as stream:
        assert pod.launcher is not None
        pod.launcher.send_signal(signal.SIGTERM)
        await pod.until("Terminating", 2)
        refused = await client.post(body("tools/call", 2, name="echo", arguments={}))
        assert refused.status_code == 503
        assert "shutting down" in refused.json()["error"]["message"]
        release()
        assert (await call)["result"]["content"][0]["text"] == "held"
        async with asyncio.timeout(5):
            await stream.ended.wait()
    loop = asyncio.get_running_loop()
    started = time.monotonic()
    assert await loop.run_in_executor(None, pod.launcher.wait, 10) == 0
    assert time.monotonic() - started < 3
    assert (await pod.status()).exit is not None


async def test_sigterm_ends_an_idle_relay_quickly_with_code_0_also_when_sent_twice(make_pod: Any) -> None:
    pod = await make_pod(relay="process")
    client = await pod.connected()
    async with client.stream() as stream, stopwatch() as passed:
        pod.process.send_signal(signal.SIGTERM)
        pod.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(5):
            assert await pod.process.wait() == 0
            await stream.ended.wait()
        assert passed() < 1.5


async def test_sigterm_lets_a_running_call_finish(make_pod: Any) -> None:
    pod = await make_pod(relay="process")
    client = await pod.connected()
    call = asyncio.create_task(client.call("hold", 1))
    release = await pod.holding()
    pod.process.send_signal(signal.SIGTERM)
    await pod.until("Terminating")
    release()
    assert (await call)["result"]["content"][0]["text"] == "held"
    async with asyncio.timeout(5):
        assert await pod.process.wait() == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"MCP_RELAY_SERVER_NAME": ""}, "MCP_RELAY_SERVER_NAME is not set"),
        ({"MCP_RELAY_STATE_DIR": "/dev/null/state"}, "/dev/null/state"),
        ({"MCP_RELAY_SECRETS_DIR": "/nowhere"}, "mount the server's Secret"),
        ({"MCP_RELAY_HOST": "192.0.2.1"}, "Cannot assign"),
    ],
)
async def test_a_relay_that_cannot_start_says_why(tmp_path: Path, change: dict[str, str], words: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mcp_sidecar"),
        env=Pod(tmp_path).environment() | change,
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    assert process.returncode == 2
    assert words in errors.decode()
    assert "Traceback" not in errors.decode()


async def test_state_files_are_json_and_survive_a_broken_one(make_pod: Any) -> None:
    pod = await make_pod()
    await pod.until("Connected")
    await pod.stop_relay()
    path = pod.directory / "state" / "handshake.json"
    assert json.loads(path.read_text())["handshakes"] == 1
    path.write_text("{broken")
    await pod.relay()
    status = await pod.until("Connected")
    assert status.handshakes == 1  # a second initialize, because nothing is known of the first
