"""The connection between relay and launcher breaks again and again while clients call: no call notices."""

import asyncio
import json
from typing import Any

import pytest

from clusterkit.sockets import shut_down
from relaykit.pod import Pod

CUTS, CALLERS = 40, 16
# Far below the limit of a call, after which one whose request or answer got lost would fail.
LIMIT_SECONDS = 10.0


@pytest.mark.parametrize(
    "relay", ["inside", "own"]
)  # on the event loop of the standard library, and on uvloop
async def test_no_request_and_no_answer_gets_lost_with_the_connection(make_pod: Any, relay: str) -> None:
    pod: Pod = await make_pod(relay=relay)
    await pod.until("Connected")
    assert pod.launcher is not None
    answered: asyncio.Queue[str] = asyncio.Queue()
    over = asyncio.Event()

    async def caller(name: int) -> None:
        client, number = await pod.connected(), 0
        while not over.is_set():
            number += 1
            text = f"{name}/{number}"
            async with asyncio.timeout(LIMIT_SECONDS):
                reply = await client.call("echo", text=text)
            assert json.loads(reply["result"]["content"][0]["text"]) == text
            answered.put_nowait(text)

    async with asyncio.TaskGroup() as callers:
        for name in range(CALLERS):
            callers.create_task(caller(name))
        for _ in range(CUTS):
            while not answered.empty():
                answered.get_nowait()
            for _ in range(
                2 * CALLERS
            ):  # more than were under way when the connection broke: there is a new one
                await answered.get()
            shut_down(pod.launcher.pid, "server.sock")
        over.set()
