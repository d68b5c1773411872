"""A process for each client session: one that uses more memory than it may ends alone."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from relaykit.client import Client
from relaykit.pod import Pod
from relaykit.waiting import eventually

MIB = 1 << 20


@contextlib.asynccontextmanager
async def limited(directory: Path, memory: int, mode: str = "answer") -> AsyncIterator[Pod]:
    """A pod whose processes may hold so many bytes each."""
    pod = Pod(directory, session_mode="PerClient")
    try:
        pod.launch(mode, flags=("--memory-limit", str(memory)))
        await pod.relay()
        yield pod
    finally:
        await pod.stop()


async def pid(client: Client) -> int:
    """The process that serves a client."""
    found = (await client.text("stats"))["pid"]
    assert isinstance(found, int)
    return found


async def counted(pod: Pod) -> bool:
    """Whether the end of one process was counted as one for its memory."""
    line = 'mcp_relay_processes_ended_total{reason="MemoryLimitExceeded"} 1.0'
    return line in (await pod.admin("GET", "/metrics")).text


async def test_a_process_above_its_memory_limit_ends_and_its_client_alone_is_told_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with limited(tmp_path, 128 * MIB) as pod:
        before = await pod.until("Connected")
        one, two = await pod.connected(), await pod.connected()
        first, other = await pid(one), await pid(two)
        await two.call("eat", mib=40)
        working = asyncio.create_task(two.call("sleep", seconds=5))
        waiting = [asyncio.create_task(one.call("sleep", number, seconds=60)) for number in (7, 8)]
        await pod.in_flight(3)
        eating = asyncio.create_task(one.call("eat", 9, mib=200))
        for call in waiting:
            error = (await call)["error"]
            assert "memory limit of 128Mi (spec.session.processMemoryLimit)" in error["message"]
            assert error["data"] == {"reason": "server_gone", "outcome": "unknown"}
        await eating
        assert (await working)["result"]["content"][0]["text"] == "slept"
        assert (await pid(two), psutil.pid_exists(first)) == (other, False)
        await eventually(lambda: counted(pod))
        assert await pid(await pod.connected()) not in (first, other)
        status = await pod.status()
        assert (status.state, status.process, status.error) == ("Connected", before.process, None)
        assert status.process_failure is not None
        assert status.process_failure.reason == "MemoryLimitExceeded"
        told = [record.__dict__["fields"] for record in caplog.records if record.message == "process_ended"]
        assert [("limit of 128Mi" in each["how"], each["reason"]) for each in told] == [
            (True, "MemoryLimitExceeded")
        ]


async def test_a_first_process_above_the_memory_limit_says_so(tmp_path: Path) -> None:
    async with limited(tmp_path, 64 * MIB, "greedy") as pod:
        status = await pod.until("Exited")
        assert status.exit is not None
        assert status.exit.reason == "MemoryLimitExceeded"
        assert status.error is not None
        assert "memory limit of 64Mi (spec.session.processMemoryLimit)" in status.error.message
