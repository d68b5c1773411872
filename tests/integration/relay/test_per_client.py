"""One process for each client session: nothing of one client is seen by another."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp import Client as Library
from mcp.client.sse import sse_client

from mcp_sidecar.session import perclient
from mcp_sidecar.stdio.keeper import Keeper
from relaykit.client import Client, body
from relaykit.pod import SCRIPTED, TOKEN, Pod, kill_process, let_go
from relaykit.waiting import eventually

PER_CLIENT = {"session_mode": "PerClient"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}


async def pid(client: Client) -> int:
    """The process that serves a client."""
    found = (await client.text("stats"))["pid"]
    assert isinstance(found, int)
    return found


async def gone(number: int) -> None:
    async def ended() -> bool:
        return not psutil.pid_exists(number)

    await eventually(ended, 15)


async def tools(client: Client) -> set[str]:
    return {tool["name"] for tool in (await client.request("tools/list"))["result"]["tools"]}


async def made(make_pod: Any, mode: str = "answer", **settings: Any) -> Pod:
    pod: Pod = await make_pod(mode, **(PER_CLIENT | settings))
    await pod.until("Connected")
    return pod


@contextlib.asynccontextmanager
async def reluctant(directory: Path, **settings: Any) -> AsyncIterator[Pod]:
    """A pod whose processes, asked to end, do so only after `release`."""
    script = directory / "server.sh"
    wait = f"while [ ! -e {directory}/released ]; do sleep 0.05; done"
    script.write_text(f"#!/bin/sh\ntrap '' TERM\n{sys.executable} {SCRIPTED}\n{wait}\n")
    script.chmod(0o755)
    pod = Pod(directory, **(PER_CLIENT | settings))
    try:
        pod.launch(command=[str(script)], flags=("--stdin-grace", "60s"))
        await pod.relay()
        await pod.until("Connected")
        yield pod
    finally:
        release(pod)
        await pod.stop()


def release(pod: Pod) -> None:
    (pod.directory / "released").touch()


async def waiting(pod: Pod, requests: int) -> None:
    """Wait until that many requests wait for a process."""

    async def reached() -> bool:
        metrics = (await pod.admin("GET", "/metrics")).text
        return f"\nmcp_relay_calls_waiting {requests}.0\n" in metrics

    await eventually(reached)


async def give_up(pod: Pod) -> None:
    """A client that begins a session and goes before it has one."""
    asking = asyncio.create_task(pod.client().post(body("initialize", 1, **INITIALIZE)))
    await waiting(pod, 1)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await waiting(pod, 0)


async def stateless(pod: Pod, name: str, **arguments: Any) -> Any:
    """What a tool answers to a client without a session."""
    message = body("tools/call", 1, name=name, arguments=arguments, _meta=ENVELOPE)
    headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": name}
    async with pod.client() as client:
        return (await client.post(message, **headers)).json()


def lost(reply: Any) -> bool:
    """Whether a reply says that the session has to be begun anew."""
    data = reply.json()["error"]["data"]
    return (reply.status_code, data["reason"], data["action"]) == (
        404, "session_not_found", "reinitialize_and_replay_once",
    )  # fmt: skip


@pytest.mark.parametrize(("mode", "seen"), [("PerClient", False), ("Shared", True)])
async def test_what_one_client_does_to_the_servers_state_is_seen_by_others_only_where_it_is_shared(
    make_pod: Any, mode: str, seen: bool
) -> None:
    pod = await made(make_pod, session_mode=mode)
    one, two = await pod.connected(), await pod.connected()
    await one.call("change")
    assert "extra0" in await tools(one)
    assert ("extra0" in await tools(two)) is seen
    assert (await pid(one) == await pid(two)) is seen
    assert "extra0" not in {tool.name for tool in (await pod.status()).tools} or seen


async def test_sessions_at_a_server_without_sessions_have_a_process_each(make_pod: Any) -> None:
    pod = await made(make_pod, "stateless")
    one, two = await pod.connected(), await pod.connected()
    for client, text in ((one, "a"), (two, "b")):
        assert text in (await client.call("echo", text=text))["result"]["content"][0]["text"]
    assert (await pod.status()).processes == 2


async def test_the_end_of_a_process_ends_the_calls_and_the_session_of_its_client_alone(make_pod: Any) -> None:
    pod = await made(make_pod)
    one, two = await pod.connected(), await pod.connected()
    before, first, other = await pod.status(), await pid(one), await pid(two)
    calls = [asyncio.create_task(client.call("hold", 7)) for client in (one, two)]
    await pod.in_flight(2)
    os.kill(first, signal.SIGKILL)
    assert (await calls[0])["error"]["data"] == {"reason": "server_gone", "outcome": "unknown"}

    async def told() -> bool:
        reply = await one.post(body("tools/list", 8))
        return reply.status_code == 404 and lost(reply)

    await eventually(told)
    let_go(other)
    assert (await calls[1])["result"]["content"][0]["text"] == "held"
    assert await pid(two) == other
    again = await pod.connected()
    assert await pid(again) not in (first, other)
    status = await pod.status()
    assert (status.state, status.process, status.error) == ("Connected", before.process, None)


async def test_the_first_process_is_started_again_beside_those_of_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perclient, "STEADY_SECONDS", 0.0)
    pod = Pod(tmp_path, **PER_CLIENT)
    try:
        pod.launch(flags=("--steady", "1ms"))
        await pod.relay()
        before = await pod.settled()
        client = await pod.connected()
        own = await pid(client)
        kill_process(before)
        told = [before]
        async with asyncio.timeout(15):
            while told[-1].process == before.process or told[-1].tool_count is None:
                told.append(await pod.status(told[-1].revision, 5))
        assert [status.exit for status in told] == [None] * len(told)
        assert (told[-1].state, told[-1].tool_count) == ("Connected", before.tool_count)
        assert await pid(client) == own
    finally:
        await pod.stop()


async def test_delete_ends_the_process_of_the_session(make_pod: Any) -> None:
    pod = await made(make_pod)
    one, two = await pod.connected(), await pod.connected()
    first, other = await pid(one), await pid(two)
    assert (await one.delete()).status_code == 200
    await gone(first)
    assert lost(await one.post(body("tools/list", 8)))
    assert await pid(two) == other


async def test_an_idle_session_ends_with_its_process_and_one_with_an_open_stream_does_not(
    make_pod: Any,
) -> None:
    pod = await made(make_pod, idle_timeout=1.0)
    two = await pod.connected()
    async with two.stream():
        other = await pid(two)
        one = await pod.connected()  # now: another process may take longer to start than it may be idle
        first = await pid(one)
        await gone(first)
        assert lost(await one.post(body("tools/list", 8)))
        assert await pid(two) == other


async def test_above_the_limit_the_session_idle_longest_ends_and_none_in_use_does(make_pod: Any) -> None:
    pod = await made(make_pod, max_processes=2)
    one, two = await pod.connected(), await pod.connected()
    idle = await pid(one)
    async with two.stream():
        used = await pid(two)
        three = await pod.connected()
        await gone(idle)
        assert lost(await one.post(body("tools/list", 8)))
        async with three.stream():
            reply = await pod.client().post(body("initialize", 1, **INITIALIZE))
            assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
            assert reply.json()["error"]["data"] == {"reason": "capacity", "max_processes": 2}
            assert (await pod.status()).processes == 2
        assert await pid(two) == used


async def test_clients_without_a_session_have_one_process_of_their_own(make_pod: Any) -> None:
    pod = await made(make_pod)
    client = await pod.connected()
    own = await pid(client)
    shared = [
        json.loads((await stateless(pod, "stats"))["result"]["content"][0]["text"])["pid"] for _ in range(2)
    ]
    assert shared[0] == shared[1] != own
    os.kill(shared[0], signal.SIGKILL)
    await gone(shared[0])

    async def served() -> bool:
        answer = await stateless(pod, "echo", text="x")
        return "result" in answer

    await eventually(served, 15)
    assert await pid(client) == own
    assert (await pod.status()).state == "Connected"


async def test_a_relay_that_was_killed_finds_every_session_and_its_process_again(make_pod: Any) -> None:
    pod: Pod = await make_pod(relay="own", **PER_CLIENT)
    await pod.until("Connected")
    one, two = await pod.connected(), await pod.connected()
    await one.call("change")
    before = [await pid(one), await pid(two)]
    await pod.kill_relay()
    await pod.spawn_relay()
    assert [await pid(one), await pid(two)] == before
    assert "extra0" in await tools(one)
    assert (await one.text("stats"))["initialize"] == 1
    assert (await pod.status()).processes == 2
    assert (await one.delete()).status_code == 200
    await gone(before[0])


async def test_processes_and_sessions_are_counted(make_pod: Any) -> None:
    pod = await made(make_pod)
    assert (await pod.status()).processes == 0
    clients = [await pod.connected() for _ in range(3)]
    status = await pod.status()
    assert (status.clients, status.processes) == (3, 3)
    metrics = (await pod.admin("GET", "/metrics")).text
    assert "\nmcp_relay_processes 3.0\n" in metrics
    assert "\nmcp_relay_clients 3.0\n" in metrics
    await clients[0].delete()
    assert (await pod.status()).processes == 2


async def test_a_stream_of_the_old_transport_has_a_process_until_it_ends(make_pod: Any) -> None:
    pod = await made(make_pod, http_sse=True)
    url, headers = pod.url.removesuffix("/mcp") + "/sse", {"authorization": f"Bearer {TOKEN}"}
    async with (
        Library(sse_client(url, headers=headers), mode="legacy") as one,
        Library(sse_client(url, headers=headers), mode="legacy") as two,
    ):
        stats = [json.loads((await each.call_tool("stats", {})).content[0].text) for each in (one, two)]  # type: ignore[union-attr]  # a text content
        assert stats[0]["pid"] != stats[1]["pid"]
    for each in stats:
        await gone(each["pid"])


async def test_a_process_that_does_not_start_is_told_to_its_client_alone(
    make_pod: Any, tmp_path: Path
) -> None:
    script = tmp_path / "server.sh"
    marker = tmp_path / "started"
    script.write_text(f"#!/bin/sh\n[ -e {marker} ] && exit 3\ntouch {marker}\nexec python3 {SCRIPTED}\n")
    script.chmod(0o755)
    pod = Pod(tmp_path, **PER_CLIENT)
    try:
        pod.launch(command=[str(script)])
        await pod.relay()
        await pod.until("Connected")
        answer = (await pod.client().post(body("initialize", 1, **INITIALIZE))).json()
        assert "exited with code 3" in answer["error"]["message"]
        assert ((await pod.status()).state, (await pod.status()).processes) == ("Connected", 0)
    finally:
        await pod.stop()


async def test_a_request_that_waits_for_its_process_keeps_the_place_of_that_from_a_new_session(
    tmp_path: Path,
) -> None:
    async with reluctant(tmp_path, max_processes=1) as pod:
        await pod.connected()
        asking = asyncio.create_task(stateless(pod, "echo", text="x"))
        await waiting(pod, 1)  # for the end of the session's process
        reply = await pod.client().post(body("initialize", 1, **INITIALIZE))
        assert (reply.status_code, reply.json()["error"]["data"]["reason"]) == (503, "capacity")
        release(pod)
        assert (await asking)["result"]["content"][0]["text"] == '"x"'
        assert await pid(await pod.connected())


async def test_a_client_that_gives_up_leaves_its_place_to_the_next(tmp_path: Path) -> None:
    async with reluctant(tmp_path, max_processes=1) as pod:
        await pod.connected()
        for _ in range(2):
            await give_up(pod)
            assert (await pod.status()).processes == 0
        asking = asyncio.create_task(pod.connected())
        await waiting(pod, 1)
        release(pod)
        assert await pid(await asking)


async def test_a_stream_of_the_old_transport_that_ends_before_its_session_begins_leaves_its_place(
    tmp_path: Path,
) -> None:
    async with reluctant(tmp_path, max_processes=1, http_sse=True) as pod:
        await pod.connected()
        client = pod.client()
        url = pod.url.removesuffix("/mcp")
        async with client.http.stream("GET", url + "/sse", headers=client.headers()) as stream:
            lines = stream.aiter_lines()
            place = [await anext(lines), await anext(lines)][1].removeprefix("data: ")
            said = await pod.client().http.post(
                url + place, headers=client.headers(), json=body("initialize", 1, **INITIALIZE)
            )
            assert said.status_code == 202
            await waiting(pod, 1)
        await waiting(pod, 0)
        assert (await pod.status()).processes == 0
        release(pod)
        assert await pid(await pod.connected())


async def test_clients_without_a_session_are_served_while_their_process_before_is_still_ending(
    tmp_path: Path,
) -> None:
    async with reluctant(tmp_path, idle_timeout=1.0) as pod:
        first = json.loads((await stateless(pod, "stats"))["result"]["content"][0]["text"])["pid"]

        async def idle() -> bool:
            return (await pod.status()).processes == 0

        await eventually(idle)
        again = json.loads((await stateless(pod, "stats"))["result"]["content"][0]["text"])["pid"]
        assert again != first


async def test_a_request_without_a_session_that_is_given_up_leaves_the_place_of_its_process(
    tmp_path: Path,
) -> None:
    async with reluctant(tmp_path, max_processes=1) as pod:
        await pod.connected()
        asking = asyncio.create_task(stateless(pod, "echo", text="x"))
        await waiting(pod, 1)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await waiting(pod, 0)
        coming = asyncio.create_task(pod.connected())
        await waiting(pod, 1)
        release(pod)
        assert await pid(await coming)


async def test_a_process_that_an_earlier_relay_had_just_asked_for_ends_when_nobody_uses_it(
    make_pod: Any,
) -> None:
    pod = await made(make_pod, idle_timeout=1.0)
    async with asyncio.timeout(15):
        assert await Keeper(pod.settings.control_path).run("0123456789abcdef") == 0
    assert (await pod.status()).processes == 0


async def test_what_is_kept_of_processes_that_ended_without_a_relay_is_removed_by_the_next(
    make_pod: Any,
) -> None:
    pod: Pod = await make_pod(relay="own", **PER_CLIENT)
    await pod.until("Connected")
    one, two = await pod.connected(), await pod.connected()
    dead = await pid(one)
    folder = pod.directory / "state" / "processes"
    assert len(list(folder.iterdir())) == 2
    await pod.kill_relay()
    os.kill(dead, signal.SIGKILL)

    async def noticed() -> bool:
        return len(list(pod.directory.glob("*.process"))) == 1

    await eventually(noticed)
    await pod.spawn_relay()
    assert len(list(folder.iterdir())) == 1
    assert await pid(two) != dead
    assert lost(await one.post(body("tools/list", 8)))
