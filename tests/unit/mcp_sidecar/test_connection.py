import asyncio
import gc
import re
import weakref

import pytest

from mcp_sidecar.core.httptext import Reply
from mcp_sidecar.web import connection as web
from mcp_sidecar.web import intake
from mcp_sidecar.web.connection import Connection
from relaykit.wirepeer import Peer, Transport, chunked, request


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
        (b"", web.FIRST_SECONDS),
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


def joined(peer: Peer, data: bytes = b"") -> tuple[Connection, Transport]:
    """One more connection of the same port."""
    transport = Transport()
    connection = Connection(peer.site, asyncio.get_running_loop())
    connection.connection_made(transport)
    if data:
        connection.data_received(data)
    return connection, transport


async def test_of_too_many_connections_one_without_a_good_request_goes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web, "MAX_CONNECTIONS", 2)
    peer = Peer()
    await peer.send(request(b"good"))
    _, half = joined(peer, b"POST / HTTP/1.1\r\nhost")
    _, served = joined(peer, request(b"x"))
    assert half.closed == "aborted"
    assert not peer.transport.closed
    assert b"200 OK" in served.written
    assert peer.application.problems == ["connections"]


async def test_of_too_many_connections_the_one_idle_longest_goes_and_never_one_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web, "MAX_CONNECTIONS", 2)
    peer = Peer()
    await peer.send(request(b"x", path=b"/later"))
    idle, unused = joined(peer, request(b"x"))
    _, newest = joined(peer, request(b"x"))
    assert (unused.closed, peer.transport.closed, newest.closed) == ("aborted", "", "")
    idle.connection_lost(None)


async def test_connections_that_send_no_good_head_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "MAX_NEWCOMERS", 3)
    peer = Peer()
    await peer.send(request(b"good") + b"POST / HTTP/1.1\r\n")  # and now one half of the next
    opened = [joined(peer, b"GET / HT")[1] for _ in range(3)]
    assert peer.transport.closed == "aborted"
    assert [transport.closed for transport in opened] == ["", "", ""]


async def test_a_large_request_without_room_is_told_to_come_again() -> None:
    peer = Peer()
    peer.site.bodies.limit = 1500
    first = request(b"x" * 900)
    await peer.send(first[:-1])
    _, second = joined(peer, request(b"y" * 900)[:-1])
    assert second.written.startswith(b"HTTP/1.1 503 ")
    assert peer.application.problems == ["busy"]
    await peer.send(first[-1:])
    assert peer.statuses == [200]
    assert peer.site.bodies.taken == 0


@pytest.mark.parametrize("lose", [True, False])
async def test_the_room_of_a_body_is_given_back_however_its_request_ends(lose: bool) -> None:
    peer = Peer()
    await peer.send(request(b"x", path=b"/later") + request(b"y" * 900) + chunked(b"z" * 900)[:-7])
    assert peer.site.bodies.taken == 1800
    if lose:
        peer.connection.connection_lost(None)
    else:
        await peer.send(b"junk")
        peer.application.later[0].answer(b"")
        await peer.settle()
    assert peer.site.bodies.taken == 0


async def test_a_body_keeps_its_room_as_long_as_a_task_needs_it() -> None:
    peer = Peer()
    done = asyncio.Event()

    async def work() -> None:
        await done.wait()

    peer.application.defer = work
    await peer.send(request(b"x" * 900)[:-1])
    await peer.send(b"x")
    peer.connection.connection_lost(None)
    assert peer.site.bodies.taken == 900
    done.set()
    await asyncio.sleep(0.01)
    assert peer.site.bodies.taken == 0


async def test_the_room_of_a_large_reply_is_given_back_when_it_is_complete_or_lost() -> None:
    peer = Peer()
    await peer.send(request(b"x", path=b"/later"))
    exchange = peer.application.later[0]
    assert exchange.take_reply(2**30)  # one always fits
    _, second = joined(peer, request(b"x", path=b"/later"))
    other = peer.application.later[1]
    assert not other.take_reply(2**20)
    exchange.answer(b"large")
    assert peer.site.replies.taken == 0
    assert other.take_reply(2**20)
    assert not second.closed


def _intakes() -> int:
    return sum(isinstance(each, intake.Intake) for each in gc.get_objects())


async def test_nothing_is_left_of_a_connection_that_is_gone() -> None:
    peer = Peer()
    gc.disable()
    try:
        others = _intakes()
        connection, _ = joined(peer, b"POST / HTTP/1.1\r\nx: " + b"y" * 9999)
        assert _intakes() == others + 1
        connection.connection_lost(None)
        del connection
        assert _intakes() == others
    finally:
        gc.enable()


async def test_requests_that_wait_behind_another_are_few() -> None:
    peer = Peer()
    await peer.send(request(b"x", path=b"/later"))
    peer.connection.data_received(request(method=b"GET") * (web.MAX_WAITING + 1))
    assert peer.transport.closed == "aborted"


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


@pytest.mark.parametrize("end", ["answered", "gone"])
async def test_what_is_told_of_a_client_that_goes_is_free_at_once_when_its_request_ends(end: str) -> None:
    class Call:
        exchange: object = None

        def deserted(self) -> None:
            pass

    peer = Peer()
    await peer.send(request(b"x", path=b"/later"))
    exchange = peer.application.later.pop()
    call = Call()
    call.exchange, exchange.on_gone = exchange, call.deserted  # each knows the other
    left = weakref.ref(call)
    gc.disable()
    try:
        if end == "answered":
            exchange.answer(b"{}")
        else:
            peer.connection.connection_lost(None)
        del call, exchange
        assert left() is None
    finally:
        gc.enable()
