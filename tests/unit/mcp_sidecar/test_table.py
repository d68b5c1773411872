import asyncio
import time
from pathlib import Path

import pytest
import uvloop

from mcp_sidecar.core import frames
from mcp_sidecar.core.sessionid import Signer
from mcp_sidecar.session import table as table_module
from mcp_sidecar.session.calls import Call
from mcp_sidecar.session.clients import Client, Clients
from mcp_sidecar.session.store import Store
from mcp_sidecar.session.table import CallTable


def make_client(directory: Path) -> Client:
    return Clients(Signer(b"k", "u"), Store(directory), 10, 60).open({}, "s")


def make_call(client: Client, number: int = 1) -> Call:
    frame = frames.parse(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % number)
    return Call(client, frame, asyncio.get_running_loop().time(), sse=False)


async def test_everybody_who_waits_for_the_last_call_hears_of_its_end(tmp_path: Path) -> None:
    table, client = CallTable(1, 30), make_client(tmp_path)
    number = table.number()
    for _ in range(2):  # and again when there are calls again
        table.add(number, make_call(client))
        waiting = [asyncio.create_task(table.idle(20)) for _ in range(3)]
        await asyncio.sleep(0)
        table.take(number)
        async with asyncio.timeout(20):
            assert await asyncio.gather(*waiting) == [True] * 3
        assert await table.idle(0)
    table.add(number, make_call(client))
    assert not await table.idle(0.01)
    table.close()


async def test_a_later_call_is_looked_after_in_time_though_an_earlier_one_may_take_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_module, "QUIET_SECONDS", 0.03)
    table, client = CallTable(1, 30), make_client(tmp_path)
    quiet: asyncio.Queue[Call] = asyncio.Queue()
    table.on_quiet = quiet.put_nowait
    for number in (1, 2):  # the first one's limit is all that is left to wait for when the second comes
        call = make_call(client, number)
        table.add(table.number(), call)
        async with asyncio.timeout(20):
            assert await quiet.get() is call
    table.close()


def test_each_call_is_given_up_though_the_loop_is_too_busy_to_be_in_time(tmp_path: Path) -> None:
    async def over() -> list[int]:
        table, client = CallTable(1, 0.05), make_client(tmp_path)
        gone: list[int] = []

        def slowly(number: int, _call: Call, _seconds: float) -> None:
            gone.append(number)
            time.sleep(0.03)  # the next one is overdue before the timer is set anew

        table.on_timeout = slowly
        calls = []
        for number in range(5):
            calls.append(table.number())
            table.add(calls[-1], make_call(client, number))
            await asyncio.sleep(0.02)
        async with asyncio.timeout(20):
            while len(gone) < len(calls):  # noqa: ASYNC110 - the table tells nobody else
                await asyncio.sleep(0.01)
        table.close()
        return gone

    # uvloop, as in the pod: what is due at once has no time there.
    assert len(uvloop.run(over())) == 5


async def test_a_defect_met_by_one_call_leaves_the_others_their_limits(tmp_path: Path) -> None:
    table, client = CallTable(1, 0.02), make_client(tmp_path)
    gone: asyncio.Queue[int] = asyncio.Queue()

    def fails_once(number: int, _call: Call, _seconds: float) -> None:
        if number == first:
            raise ValueError("a defect")
        gone.put_nowait(number)

    table.on_timeout = fails_once
    first, second = table.number(), table.number()
    for number in (first, second):
        table.add(number, make_call(client, number))
    async with asyncio.timeout(20):
        assert await gone.get() == second
    third = table.number()
    table.add(third, make_call(client, third))
    async with asyncio.timeout(20):
        assert await gone.get() == third
    table.close()
