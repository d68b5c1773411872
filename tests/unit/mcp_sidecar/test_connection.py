import asyncio
import re

import pytest

from mcp_sidecar.core.httptext import Reply
from mcp_sidecar.web import connection as web
from mcp_sidecar.web import intake
from mcp_sidecar.web.connection import Connection
from relaykit.wirepeer import Peer, Transport, request


async def test_an_answer_is_one_write() -> None:
    peer = Peer()
    await peer.send(request(b"x"))
    await peer.send(request(b"y"))
    assert peer.transport.writes == 2


async def test_replies_come_in_the_order_of_the_requests() -> None:
    peer = Peer()
    await peer.send(request(b"1", path=b"/later") + request(b"2") + request(b"3", path=b"/later"))
    assert (len(peer.application.later), peer.transport.written) == (1, b"")
    assert not peer.transport.reading
    peer.application.later[0].answer(b"first")
    await peer.settle()
    assert len(peer.application.later) == 2
    assert peer.transport.reading
    peer.application.later[1].answer(b"third")
    assert re.findall(rb"\r\n\r\n(first|2|third)", peer.transport.written) == [b"first", b"2", b"third"]


async def test_thousands_of_requests_in_one_piece_are_served_one_after_the_other() -> None:
    peer = Peer()
    await peer.send(request(method=b"GET") * 5000)
    assert len(peer.statuses) == 5000
    assert peer.transport.reading


async def test_a_client_that_does_not_take_its_replies_is_not_read_from() -> None:
    peer = Peer()
    peer.connection.pause_writing()
    await asyncio.wait_for(_without_settling(peer, request(b"x")), 1)
    assert peer.application.seen == []
    assert not peer.transport.reading
    peer.connection.resume_writing()
    await peer.settle()
    assert peer.statuses == [200]
    assert peer.transport.reading


async def _without_settling(peer: Peer, data: bytes) -> None:
    peer.connection.data_received(data)
    await asyncio.sleep(0)


@pytest.mark.parametrize("line", [b"POST / HTTP/1.1\r\nconnection: close", b"POST / HTTP/1.0"])
async def test_a_connection_ends_after_the_reply_when_the_client_wants_it(line: bytes) -> None:
    peer = Peer()
    await peer.send(line + b"\r\nhost: a\r\ncontent-length: 1\r\n\r\nx" + request(b"behind"))
    assert peer.statuses == [200]
    assert b"connection: close" in peer.transport.written
    assert peer.transport.closed == "after the reply"


async def test_the_reply_to_head_has_no_body() -> None:
    peer = Peer()
    await peer.send(request(method=b"HEAD", path=b"/later") + request(b"x"))
    peer.application.later[0].reply(Reply(200, b"{}"))
    await peer.settle()
    assert (
        b"content-length: 2\r\ncontent-type: application/json\r\n\r\nHTTP/1.1 200" in peer.transport.written
    )


async def test_a_reply_in_parts_comes_in_chunks_and_to_an_old_client_until_the_end() -> None:
    for version, wanted in ((b"1.1", b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), (b"1.0", b"abcde")):
        peer = Peer()
        await peer.send(b"POST /later HTTP/" + version + b"\r\nhost: a\r\ncontent-length: 0\r\n\r\n")
        exchange = peer.application.later[0]
        exchange.open([])
        assert peer.transport.writes == 0
        for part in (b"abc", b"de"):
            exchange.send(part)
        exchange.end()
        assert peer.transport.written.partition(b"\r\n\r\n")[2] == wanted


async def test_a_defect_met_by_a_request_cuts_its_connection_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    peer = Peer()
    await peer.send(request(b"x", path=b"/break") + request(b"behind"))
    assert peer.transport.closed == "aborted"
    assert len(peer.application.seen) == 1
    assert [record.message for record in caplog.records] == ["request_failed"]


async def test_an_application_hears_of_a_client_that_goes_and_may_answer_still() -> None:
    peer = Peer()
    await peer.send(request(b"x", path=b"/later") + request(b"behind"))
    gone: list[bool] = []
    exchange = peer.application.later[0]
    exchange.on_gone = lambda: gone.append(True)
    peer.connection.connection_lost(None)
    assert gone == [True]
    assert exchange.gone
    exchange.answer(b"late")
    await exchange.drained()
    assert (peer.transport.written, len(peer.application.seen)) == (b"", 1)
    assert not peer.site.connections


@pytest.mark.parametrize(
    ("data", "seconds"),
    [
        (b"", web.KEEP_ALIVE_SECONDS),
        (request(b"x"), web.KEEP_ALIVE_SECONDS),
        (b"POST / HTTP/1.1\r\n", intake.HEAD_SECONDS),
        (request(b"body")[:-1], intake.BODY_SECONDS),
    ],
)
async def test_a_client_that_takes_too_long_is_sent_away(data: bytes, seconds: float) -> None:
    peer = Peer()
    await peer.send(data)
    now = asyncio.get_running_loop().time()
    peer.connection.check(now + seconds - 1)
    assert not peer.transport.closed
    peer.connection.check(now + seconds + 1)
    assert peer.transport.closed
    slow = data[-1:] not in (b"", b"x")
    assert (peer.statuses[-1:] == [408]) is slow
    assert peer.application.problems == ["slow"] * slow


async def test_a_body_that_trickles_has_a_bound_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = Peer()
    now = asyncio.get_running_loop().time()
    clock = [now]
    monkeypatch.setattr(peer.connection._intake, "_loop", type("Loop", (), {"time": lambda _: clock[0]})())
    await peer.send(request(b"x" * 900)[:-900])
    for _ in range(100):
        clock[0] += intake.BODY_SECONDS / 2
        await peer.send(b"x")
        peer.connection.check(clock[0])
        if peer.transport.closed:
            break
    assert peer.statuses == [408]
    assert clock[0] - now <= intake.REQUEST_SECONDS + intake.BODY_SECONDS


async def test_a_client_whose_call_takes_long_is_not_sent_away() -> None:
    peer = Peer()
    await peer.send(request(b"x", path=b"/later"))
    peer.connection.check(asyncio.get_running_loop().time() + 1e6)
    assert not peer.transport.closed


async def test_too_many_connections_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "MAX_CONNECTIONS", 1)
    peer = Peer()
    transport = Transport()
    Connection(peer.site, asyncio.get_running_loop()).connection_made(transport)
    assert transport.closed == "aborted"
    assert not peer.transport.closed
    assert peer.application.problems == ["connections"]


async def test_at_the_end_a_reply_under_way_is_finished_and_nothing_new_begun() -> None:
    peer, idle = Peer(), Peer()
    await peer.send(request(b"x", path=b"/later") + request(b"behind"))
    for each in (peer, idle):
        each.site.closing = True
        each.connection.end()
    assert [each.transport.closed for each in (peer, idle)] == ["", "closed"]
    peer.application.later[0].answer(b"last")
    await peer.settle()
    assert peer.transport.written.endswith(b"last")
    assert b"connection: close" in peer.transport.written
    assert peer.transport.closed == "closed"
    assert len(peer.application.seen) == 1
