import asyncio
from pathlib import Path

from mcp_sidecar.core import frames
from mcp_sidecar.core.sessionid import Signer
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
        waiting = [asyncio.create_task(table.idle(2)) for _ in range(3)]
        await asyncio.sleep(0)
        table.take(number)
        async with asyncio.timeout(1):
            assert await asyncio.gather(*waiting) == [True] * 3
        assert await table.idle(0)
    table.add(number, make_call(client))
    assert not await table.idle(0.01)
    table.close()
