"""The connection between relay and launcher breaks again and again while clients call: no call notices."""

import asyncio
import errno
import json
import os
import signal
from typing import Any

import pytest

from clusterkit.sockets import shut_down
from mcp_sidecar.stdio.link import Link
from relaykit.pod import ADMIN, Pod
from relaykit.waiting import eventually

# Far below the limit of a call, after which one whose request or answer got lost would fail.
LIMIT_SECONDS = 10.0


@pytest.mark.parametrize("relay", ["inside", "own"])  # the event loop of the standard library, and uvloop
@pytest.mark.parametrize(("callers", "cuts", "size"), [(16, 40, 0), (4, 12, 400_000)])
async def test_no_request_and_no_answer_gets_lost_with_the_connection(
    make_pod: Any, relay: str, callers: int, cuts: int, size: int
) -> None:
    pod: Pod = await make_pod(relay=relay)
    await pod.until("Connected")
    assert pod.launcher is not None
    answered: asyncio.Queue[str] = asyncio.Queue()
    over = asyncio.Event()

    async def caller(name: int) -> None:
        client, number = await pod.connected(), 0
        while not over.is_set():
            number += 1
            text = f"{name}/{number}/{'x' * size}"
            async with asyncio.timeout(LIMIT_SECONDS):
                reply = await client.call("echo", text=text)
            assert json.loads(reply["result"]["content"][0]["text"]) == text
            answered.put_nowait(text)

    async with asyncio.TaskGroup() as tasks:
        for name in range(callers):
            tasks.create_task(caller(name))
        for _ in range(cuts):
            while not answered.empty():
                answered.get_nowait()
            for _ in range(
                2 * callers
            ):  # more than were under way when the connection broke: there is a new one
                await answered.get()
            shut_down(pod.launcher.pid, "server.sock")
        over.set()


@pytest.mark.parametrize("relay", ["inside", "own"])
@pytest.mark.parametrize(("size", "calls"), [(300_000, 24), (60_000, 100)])
async def test_nothing_is_lost_that_waited_for_a_server_that_does_not_read(
    make_pod: Any, relay: str, size: int, calls: int
) -> None:
    pod: Pod = await make_pod(relay=relay)
    process = (await pod.settled()).process
    assert pod.launcher is not None
    assert process is not None
    clients = [await pod.connected() for _ in range(calls)]
    os.kill(process.pid, signal.SIGSTOP)
    try:
        replies = [
            asyncio.create_task(client.call("echo", text=f"{number}:{'x' * size}"))
            for number, client in enumerate(clients)
        ]
        await pod.in_flight(calls)
        shut_down(pod.launcher.pid, "server.sock")
    finally:
        os.kill(process.pid, signal.SIGCONT)
    async with asyncio.timeout(LIMIT_SECONDS):
        for number, reply in enumerate(await asyncio.gather(*replies)):
            text = json.loads(reply["result"]["content"][0]["text"])
            assert text == f"{number}:{'x' * size}"


async def test_a_relay_without_a_descriptor_left_connects_all_the_same(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pod.launcher is not None
    client, asked = await pod.connected(), 0

    def full(_number: int) -> int:
        nonlocal asked
        asked += 1
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "dup", full)
    shut_down(pod.launcher.pid, "server.sock")
    async with asyncio.timeout(LIMIT_SECONDS):
        while not asked:
            await client.call("echo", text="x")
        assert (await client.call("echo", text="after"))["result"]
    assert asked == 1


async def test_a_fault_of_the_relay_itself_does_not_count_as_the_end_of_the_launcher(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pod.launcher is not None
    client, failed, again = await pod.connected(), 0, asyncio.Event()
    held = asyncio.create_task(client.call("hold"))
    let_go = await pod.holding()
    connect = asyncio.get_running_loop().create_unix_connection

    async def busy(*given: Any, **named: Any) -> Any:
        nonlocal failed
        failed += 1
        if failed > 2:
            again.set()
            return await connect(*given, **named)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(asyncio.get_running_loop(), "create_unix_connection", busy)
    shut_down(pod.launcher.pid, "server.sock")
    async with asyncio.timeout(LIMIT_SECONDS):
        await again.wait()
        let_go()
        assert (await held)["result"]


async def test_a_greeting_on_a_connection_that_was_given_up_is_not_taken_for_the_next_ones(
    bare_pod: Pod,
) -> None:
    pod = bare_pod
    pod.launch("answer")

    async def listening() -> bool:
        return pod.socket.exists()

    async def linked() -> bool:
        assert pod.service is not None
        connection = pod.service.relay.upstream.link
        return isinstance(connection, Link) and connection._wire is not None

    await eventually(listening)
    assert pod.launcher is not None
    os.kill(pod.launcher.pid, signal.SIGSTOP)  # it says nothing, but can be connected to
    try:
        await pod.relay()
        await eventually(linked)
        assert (await pod.admin("POST", "/reconnect", **ADMIN)).status_code == 202
    finally:
        os.kill(pod.launcher.pid, signal.SIGCONT)
    await pod.until("Connected")
    assert (await (await pod.connected()).call("echo", text="x"))["result"]
