"""What becomes of clients' sessions when the server gets a new process, and when only the relay restarts."""

import asyncio
import shutil
from typing import Any

import pytest

from relaykit.client import body
from relaykit.fakelauncher import HELLO, FakeLauncher
from relaykit.pod import Pod

LISTS = {"tools": {"listChanged": True}, "resources": {"listChanged": True, "subscribe": True}, "logging": {}}
CALL = body("tools/call", 1, name="any", arguments={})


async def recreate(pod: Pod, launcher: FakeLauncher) -> None:
    """As a new pod: another process, a relay that has never seen a client, an empty memory volume."""
    await pod.stop_relay()
    shutil.rmtree(pod.settings.state_dir)
    # The clock of the new node is behind: times tell nothing.
    launcher.greeting = [{**HELLO, "incarnation": "next", "startTime": HELLO["startTime"] - 3600}]
    await pod.relay()


async def test_sessions_go_on_with_a_recreated_pod_and_lists_are_read_again(
    bare_pod: Pod, launcher: FakeLauncher
) -> None:
    launcher.capabilities = LISTS
    await bare_pod.relay()
    client = await bare_pod.connected()
    await recreate(bare_pod, launcher)
    await bare_pod.until("Connected")
    assert "result" in (await client.post(CALL)).json()
    async with client.stream() as stream:
        told = {(await stream.next())["method"] for _ in range(2)}
    assert told == {"notifications/tools/list_changed", "notifications/resources/list_changed"}


async def test_a_call_that_waits_for_the_recreated_pod_is_answered_by_it(
    bare_pod: Pod, launcher: FakeLauncher
) -> None:
    await bare_pod.relay()
    client = await bare_pod.connected()
    greeting = [{**HELLO, "incarnation": "next"}]
    await recreate(bare_pod, launcher)
    await bare_pod.stop_relay()
    launcher.greeting = []
    await bare_pod.relay()
    call = asyncio.create_task(client.post(CALL))
    assert not (await asyncio.wait([call], timeout=0.3))[0]
    launcher.say(greeting[0])
    assert "result" in (await call).json()


@pytest.mark.parametrize("waits", [False, True])
async def test_sessions_end_with_the_process_where_the_server_has_memory(
    bare_pod: Pod, launcher: FakeLauncher, waits: bool
) -> None:
    bare_pod.configure(on_server_restart="Expire")
    await bare_pod.relay()
    client = await bare_pod.connected()
    assert "result" in (await client.post(CALL)).json()
    await recreate(bare_pod, launcher)
    if not waits:
        await bare_pod.until("Connected")
    reply = await client.post(CALL)
    assert reply.status_code == 404
    error: Any = reply.json()["error"]
    assert (error["code"], error["message"]) == (-32000, "Session not found. Please reinitialize.")
    uptime = error["data"].pop("server_uptime_seconds")
    assert error["data"] == {"reason": "session_not_found", "action": "reinitialize_and_replay_once"}
    assert isinstance(uptime, int)
    assert uptime >= 3600
    client.sid = None
    await client.connect()
    assert "result" in (await client.post(CALL)).json()


@pytest.mark.parametrize("policy", ["Resume", "Expire"])
async def test_a_restart_of_the_relay_alone_ends_no_session(
    bare_pod: Pod, launcher: FakeLauncher, policy: str
) -> None:
    bare_pod.configure(on_server_restart=policy)
    await bare_pod.relay()
    client = await bare_pod.connected()
    await bare_pod.stop_relay()
    await bare_pod.relay()
    assert "result" in (await client.post(CALL)).json()
    assert launcher.received.count("initialize") == 1


@pytest.mark.parametrize(("policy", "status"), [("Resume", 200), ("Expire", 404)])
async def test_a_relay_that_outlives_the_process_treats_its_sessions_alike(
    bare_pod: Pod, launcher: FakeLauncher, policy: str, status: int
) -> None:
    bare_pod.configure(on_server_restart=policy)
    await bare_pod.relay()
    client = await bare_pod.connected()
    launcher.greeting = [{**HELLO, "incarnation": "next"}]
    launcher.drop()
    async with asyncio.timeout(5):
        while launcher.received.count("initialize") < 2:
            await bare_pod.status((await bare_pod.status()).revision, 1)
    await bare_pod.until("Connected")
    assert (await client.post(CALL)).status_code == status
