"""Streams of remote servers that break off, fall silent, or never end."""

import asyncio
import json
import queue

import pytest

from mcp_sidecar.remote import exchange, stream
from relaykit.unruly import RESULTS, Exchange, Json, MakeRelay, Unruly, came, ready

# The stream of a call.


async def test_a_stream_that_gets_on_is_taken_up_as_often_as_it_ends(
    unruly: Unruly, relay: MakeRelay
) -> None:
    asked: list[int] = []
    places: list[str] = []

    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call":
            return False
        asked.append(message["id"])
        http.events(b"retry: 1\nid: 0\ndata:\n\n")
        return True

    def get(http: Exchange) -> bool:
        place = http.headers.get("last-event-id")
        if place is None:
            return False
        places.append(place)
        if len(places) < 8:
            http.events(b'id: %d\ndata:\n\nid: lost\ndata: {"half' % len(places))
        else:
            http.events(b'data: {"jsonrpc":"2.0","id":%d,"result":{"content":[]}}\n\n' % asked[0])
        return True

    unruly.post, unruly.get = post, get
    client = await (await ready(relay)).connected()
    assert (await client.call("t"))["result"] == {"content": []}
    assert places == [str(number) for number in range(8)]


async def test_a_stream_that_does_not_get_on_is_given_up(unruly: Unruly, relay: MakeRelay) -> None:
    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call":
            return False
        http.events(b"id: 0\ndata:\n\n")
        return True

    def get(http: Exchange) -> bool:
        if http.headers.get("last-event-id") is None:
            return False
        http.events(b": nothing\n\n")
        return True

    unruly.post, unruly.get = post, get
    client = await (await ready(relay)).connected()
    assert (await client.call("t"))["error"]["data"]["outcome"] == "unknown"
    assert unruly.asked == ["t"]


async def test_an_event_id_of_any_script_goes_back_in_utf_8(unruly: Unruly, relay: MakeRelay) -> None:
    asked: list[int] = []
    places: list[bytes] = []

    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call":
            return False
        asked.append(message["id"])
        http.events("id: ✓\ndata:\n\n".encode())
        return True

    def get(http: Exchange) -> bool:
        place = http.headers.get("last-event-id")
        if place is None:
            return False
        places.append(place.encode("latin-1"))
        http.events(b'data: {"jsonrpc":"2.0","id":%d,"result":{"content":[]}}\n\n' % asked[0])
        return True

    unruly.post, unruly.get = post, get
    client = await (await ready(relay)).connected()
    assert (await client.call("t"))["result"] == {"content": []}
    assert places == ["✓".encode()]


# The server's own stream.


class Old:
    """A server over SSE, whose stream can fall silent."""

    def __init__(self) -> None:
        self.silent = False
        self._streams: list[queue.Queue[bytes]] = []

    def post(self, http: Exchange, message: Json) -> bool:
        if http.path == "/sse":
            http.reply(405)
            return True
        http.reply(202)
        if not self.silent and "id" in message and "method" in message:
            result = RESULTS.get(message["method"], {})
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            self._streams[-1].put(b"data: %b\n\n" % json.dumps(answer).encode())
        return True

    def get(self, http: Exchange) -> bool:
        mine: queue.Queue[bytes] = queue.Queue()
        self._streams.append(mine)
        self.silent = False
        mine.put(b"event: endpoint\ndata: /messages\n\n")
        http.stream(iter(mine.get, b""))
        return True


async def test_a_stream_of_sse_that_fell_silent_is_replaced(
    unruly: Unruly, relay: MakeRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "PING_SECONDS", 0.2)
    monkeypatch.setattr(exchange, "PROBE_SECONDS", 2.0)
    old = Old()
    unruly.post, unruly.get = old.post, old.get
    client = await (await ready(relay, "/sse", {"transport": "SSE"})).connected()
    await came(unruly, "ping", 3)
    assert unruly.seen.count("GET") == 1
    assert "result" in await client.call("t")
    old.silent = True
    await came(unruly, "GET", 2)
    assert "result" in await client.call("t")


async def test_a_stream_that_ends_at_once_is_opened_in_peace_whatever_the_server_asks(
    unruly: Unruly, relay: MakeRelay
) -> None:
    loop = asyncio.get_running_loop()
    times: list[float] = []

    def get(http: Exchange) -> bool:
        times.append(loop.time())
        http.events(b"retry: 1\n\n")
        return True

    unruly.get = get
    await ready(relay)
    await came(unruly, "GET", 3)
    assert times[2] - times[0] > 1.5 * stream.AGAIN_SECONDS
