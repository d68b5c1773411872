"""Streams of remote servers that break off, fall silent, or never end."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from mcp_sidecar.remote import courier, exchange, stream
from relaykit.unruly import Exchange, Json, MakeRelay, Old, Unruly, came, ready

CHANGED = b'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'

# The stream of a call.


def begun(asked: list[int]) -> Callable[[Exchange, Json], bool]:
    """Answers a tool call, whose id it notes, with a stream that breaks off after its first event."""

    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call":
            return False
        asked.append(message["id"])
        http.events(b"retry: 1\nid: 0\ndata:\n\n")
        return True

    return post


async def test_a_stream_that_gets_on_is_taken_up_as_often_as_it_ends(
    unruly: Unruly, relay: MakeRelay
) -> None:
    asked: list[int] = []
    places: list[str] = []

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

    unruly.post, unruly.get = begun(asked), get
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


@pytest.mark.parametrize(
    ("refusals", "answered"),
    [([429], True), ([503, 500], True), ([503] * exchange.MAX_RESUMES, False), ([403], False)],
    ids=str,
)
async def test_a_stream_that_a_busy_server_refuses_is_asked_for_again_and_not_for_ever(
    unruly: Unruly, relay: MakeRelay, refusals: list[int], answered: bool
) -> None:
    asked: list[int] = []
    left = list(refusals)

    def get(http: Exchange) -> bool:
        if http.headers.get("last-event-id") is None:
            return False
        if left:
            http.reply(left.pop(0), b"", retry_after="0")
        else:
            http.events(b'data: {"jsonrpc":"2.0","id":%d,"result":{"content":[]}}\n\n' % asked[0])
        return True

    unruly.post, unruly.get = begun(asked), get
    client = await (await ready(relay)).connected()
    reply = await client.call("t")
    if answered:
        assert reply["result"] == {"content": []}
    else:
        assert reply["error"]["data"]["outcome"] == "unknown"
    assert not left
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


async def test_an_answer_that_sse_takes_after_its_stream_has_ended_is_an_error(
    unruly: Unruly, relay: MakeRelay
) -> None:
    old, late = Old(), threading.Event()

    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call" or unruly.asked != ["t"]:
            return old.post(http, message)
        old.end()
        late.wait(20)
        http.reply(202)
        return True

    unruly.post, unruly.get = post, old.get
    pod = await ready(relay, "/sse", {"transport": "SSE"})
    client = await pod.connected()
    call = asyncio.ensure_future(client.call("t"))
    await came(unruly, "notifications/initialized", 2)
    await pod.until("Connected")
    late.set()
    assert (await call)["error"]["data"]["outcome"] == "unknown"
    assert "result" in await client.call("other")


@pytest.mark.parametrize("status", [401, 403, 409, 429, 500, 504, None])
async def test_a_stream_that_is_refused_is_asked_for_again_while_the_session_goes_on(
    unruly: Unruly, relay: MakeRelay, status: int | None
) -> None:
    def get(http: Exchange) -> bool:
        if unruly.seen.count("GET") == 2:
            http.events(CHANGED)
        elif status is not None:
            http.reply(status)
        else:
            http.close_connection = True
        return True

    unruly.get = get
    pod = await ready(relay)
    await came(unruly, "tools/list", 2)
    await came(unruly, "GET", 3)
    gets = unruly.seen.count("GET")  # now: with time come more
    status_now = await pod.status()
    assert (status_now.state, status_now.error, unruly.seen.count("initialize")) == ("Connected", None, 1)
    assert gets == 3


async def test_a_stream_stays_open_while_a_call_leaves_doubts_of_the_session(
    unruly: Unruly, relay: MakeRelay
) -> None:
    over = threading.Event()

    def get(http: Exchange) -> bool:
        http.events(b": open\n\n")
        over.wait(20)
        return True

    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") == "tools/call":
            http.reply(401)
            return True
        return False

    unruly.get, unruly.post = get, post
    client = await (await ready(relay)).connected()
    await came(unruly, "GET", 1)
    for times in (1, 2):
        assert "401" in (await client.call("t"))["error"]["message"]
        await came(unruly, "ping", times)
    assert "result" in await client.request("tools/list")
    assert unruly.seen.count("GET") == 1
    over.set()


async def test_an_event_that_is_too_large_is_dropped_and_the_stream_goes_on(
    unruly: Unruly, relay: MakeRelay
) -> None:
    over = threading.Event()

    def get(http: Exchange) -> bool:
        http.events(*[b"data: %b\n" % (b"x" * 60_000) for _ in range(20)], b"\n", CHANGED)
        over.wait(20)
        return True

    unruly.get = get
    await ready(relay, max_message_bytes=100_000)
    await came(unruly, "tools/list", 2)
    assert unruly.seen.count("GET") == 1
    over.set()


async def test_an_answer_that_is_too_large_for_sse_fails_alone(unruly: Unruly, relay: MakeRelay) -> None:
    old = Old()

    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call":
            return old.post(http, message)
        http.reply(202)
        asked[message["params"]["name"]] = message["id"]
        if message["params"]["name"] == "large":
            old.say({"jsonrpc": "2.0", "id": message["id"], "result": {"content": ["x" * 1_000_000]}})
            old.say({"jsonrpc": "2.0", "id": asked["slow"], "result": {"content": []}})
        return True

    asked: dict[str, int] = {}
    unruly.post, unruly.get = post, old.get
    pod = await ready(relay, "/sse", {"transport": "SSE"}, max_message_bytes=100_000)
    first, second = await pod.connected(), await pod.connected()
    slow = asyncio.ensure_future(first.call("slow"))
    await came(unruly, "tools/call", 1)
    assert (await second.call("large"))["error"]["data"]["reason"] == "message_too_large"
    assert "result" in await slow
    assert unruly.seen.count("initialize") == 1


async def test_a_request_that_is_answered_on_the_session_s_stream_is_over(
    unruly: Unruly, relay: MakeRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "MAX_OPEN", 10)
    old, over = Old(), threading.Event()

    def get(http: Exchange) -> bool:
        return old.listen(http, b": open\n\n")

    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call":
            return False
        http.events(b": open\n\n")
        old.say({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}})
        over.wait(20)
        return True

    unruly.post, unruly.get = post, get
    client = await (await ready(relay)).connected()
    await came(unruly, "GET", 1)
    for _ in range(15):
        assert "result" in await client.call("t")
    over.set()
