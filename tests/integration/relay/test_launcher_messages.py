"""What the launcher may say, and when, played by a launcher of the tests' own."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from relaykit.fakelauncher import HELLO, FakeLauncher
from relaykit.pod import Pod


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
    pod: Pod, launcher: FakeLauncher, message: dict[str, Any]
) -> None:
    await pod.relay()
    await pod.until("Connected")
    launcher.say(message)
    launcher.say({"event": "exit", "exitCode": 3, "reason": "Exited"})
    status = await pod.status()
    async with asyncio.timeout(2):
        while status.exit is None:
            status = await pod.status(status.revision, 5)
    assert launcher.connections == 1


async def test_a_greeting_without_a_name_is_not_taken_for_a_process(pod: Pod, launcher: FakeLauncher) -> None:
    launcher.greeting = [{**HELLO, "incarnation": None}, {**HELLO, "startTime": "now", "pid": -5}]
    await pod.relay()
    status = await pod.until("Connected")
    assert status.process is not None
    assert (status.process.incarnation, status.process.pid) == ("abc", 0)
    assert launcher.connections == 1
