"""What the launcher may say, and when, played by a launcher of the tests' own."""

import asyncio
from typing import Any

import pytest

from relaykit.fakelauncher import CAPABILITIES, HELLO, FakeLauncher
from relaykit.pod import Pod
from relaykit.waiting import eventually


@pytest.mark.parametrize(
    "message",
    [
        {"event": "exit", "exitCode": "many", "time": {}, "signal": 9},
        {"event": "oversized", "bytes": "big", "head": 5},
        {"event": "terminating", "drainSeconds": [1]},
        {"event": "hello", "pid": "x"},
        {"event": ["exit"]},
        {"event": "unheard of"},
    ],
)
async def test_a_message_of_the_launcher_that_makes_no_sense_breaks_nothing(
    bare_pod: Pod, launcher: FakeLauncher, message: dict[str, Any]
) -> None:
    await bare_pod.relay()
    await bare_pod.until("Connected")
    launcher.say(message)
    launcher.say({"event": "exit", "exitCode": 3, "reason": "Exited"})
    status = await bare_pod.status()
    async with asyncio.timeout(2):
        while status.exit is None:
            status = await bare_pod.status(status.revision, 5)
    assert launcher.connections == 1


async def test_a_greeting_without_a_name_is_not_taken_for_a_process(
    bare_pod: Pod, launcher: FakeLauncher
) -> None:
    launcher.greeting = [{**HELLO, "incarnation": None}, {**HELLO, "startTime": "now", "pid": -5}]
    await bare_pod.relay()
    status = await bare_pod.until("Connected")
    assert status.process is not None
    assert (status.process.incarnation, status.process.pid) == ("abc", 0)
    assert launcher.connections == 1


async def test_nothing_is_sent_to_a_process_that_closed_its_output(
    bare_pod: Pod, launcher: FakeLauncher
) -> None:
    launcher.capabilities = {**CAPABILITIES, "experimental": {"vendor": {}}}
    await bare_pod.relay()
    client = await bare_pod.connected()
    await client.request("resources/subscribe", uri="file://a")
    await client.notify("notifications/vendor/news")
    launcher.say({"event": "stdout-closed"})
    dropped = await bare_pod.until("Dropped", 2)
    known = len(launcher.received)
    launcher.drop()  # an old launcher says it only after its greeting
    launcher.greeting = [HELLO, {"event": "stdout-closed"}]

    async def connected_again() -> bool:
        return launcher.connections == 2

    await eventually(connected_again)
    await client.notify("notifications/vendor/news")
    await client.delete()
    after = await bare_pod.status(dropped.revision, 1.2)
    assert (after.state, after.error, after.since) == ("Dropped", dropped.error, dropped.since)
    assert launcher.received[known:] == []


async def test_a_process_that_closed_its_output_before_the_first_greeting_is_not_initialised(
    bare_pod: Pod, launcher: FakeLauncher
) -> None:
    launcher.greeting = [{**HELLO, "stdoutClosed": True}, {"event": "stdout-closed"}]
    await bare_pod.relay()
    status = await bare_pod.until("Dropped")
    assert status.error is not None
    assert (status.error.reason, status.handshakes, launcher.received) == ("StdoutClosed", 0, [])
    launcher.greeting = [{**HELLO, "incarnation": "next"}]
    launcher.drop()
    status = await bare_pod.until("Connected")
    assert (status.error, status.handshakes) == (None, 1)


async def test_a_connection_that_breaks_again_and_again_is_one_outage(
    bare_pod: Pod, launcher: FakeLauncher
) -> None:
    await bare_pod.relay()
    await bare_pod.until("Connected")
    began = set()
    for _ in range(3):
        launcher.drop()
        began.add((await bare_pod.until("Dropped", 2)).since)
        await bare_pod.until("Connected", 3)
    assert len(began) == 1


async def test_the_tools_are_asked_for_anew_when_the_connection_broke_before_they_came(
    bare_pod: Pod, launcher: FakeLauncher
) -> None:
    async def asked() -> bool:
        return "tools/list" in launcher.received

    launcher.answers = {"tools/list": lambda _message: None}
    await bare_pod.relay()
    await eventually(asked)
    launcher.answers = {}
    launcher.drop()
    async with asyncio.timeout(5):  # a list that does not come is given up after 30 s only
        status = await bare_pod.until("Connected")
        while status.tool_count is None:
            status = await bare_pod.status(status.revision, 5)
    assert (status.tool_count, status.error) == (0, None)
    assert launcher.received.count("tools/list") == 2


async def test_a_process_that_closed_its_input_is_reported_and_its_calls_answered(
    bare_pod: Pod, launcher: FakeLauncher
) -> None:
    launcher.answers["tools/call"] = lambda _message: None
    await bare_pod.relay()
    client = await bare_pod.connected()
    call = asyncio.create_task(client.call("any"))
    await bare_pod.in_flight(1)
    launcher.say({"event": "stdin-closed"})
    assert "closed its stdin" in (await call)["error"]["message"]
    status = await bare_pod.until("Dropped", 2)
    assert status.error is not None
    assert (status.error.phase, status.error.reason) == ("Process", "StdinClosed")
    assert "cannot be used" in (await client.call("any"))["error"]["message"]


async def test_a_process_that_closed_its_input_is_not_adopted_by_a_later_relay(
    bare_pod: Pod, launcher: FakeLauncher
) -> None:
    await bare_pod.relay()
    await bare_pod.until("Connected")
    await bare_pod.stop_relay()
    launcher.greeting = [{**HELLO, "stdinClosed": True}, {"event": "stdin-closed"}]
    await bare_pod.relay()
    status = await bare_pod.until("Dropped")
    assert status.error is not None
    assert status.error.reason == "StdinClosed"
