"""The watch of relays: long-polls, what counts as a failure, what wakes the reconcile."""

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from mcp_operator.adapters.errors import UnreachableError, UnreadableError
from mcp_operator.adapters.relay import MAX_DOCUMENT, Endpoint, Relay
from mcp_operator.core.observation import RelayView
from mcp_operator.handlers.relays import RelayWatches
from mcp_relay_api.status import RelayState, RelayStatus

KEY = ("default", "time")
Json = dict[str, Any]


class FakeRelay:
    """A relay's admin port: long-polls as the real one, can fall silent, refuse, or talk nonsense."""

    def __init__(self, document: Json) -> None:
        self.document = document
        self.changed = asyncio.Condition()
        self.asked: list[Json] = []
        self.tokens: list[str | None] = []
        self.reconnects = 0
        self.encodings: set[str | None] = set()
        self.answer: Callable[[], web.Response] | None = None
        self.handler: Callable[[web.Request], Awaitable[web.StreamResponse]] | None = None

    async def change(self, **fields: Any) -> None:
        async with self.changed:
            self.document = {**self.document, "revision": self.document["revision"] + 1, **fields}
            self.changed.notify_all()

    def _known(self, request: web.Request) -> bool:
        known = (request.query.get("instance"), request.query.get("after"))
        return known == (self.document["instance"], str(self.document["revision"]))

    async def status(self, request: web.Request) -> web.StreamResponse:
        if self.handler is not None:
            return await self.handler(request)
        self.encodings.add(request.headers.get("Accept-Encoding"))
        self.asked.append(dict(request.query))
        self.tokens.append(request.headers.get("Authorization"))
        if self.answer is not None:
            return self.answer()
        async with self.changed:
            while self._known(request):
                await self.changed.wait()
        return web.json_response(self.document)

    async def reconnect(self, request: web.Request) -> web.Response:
        self.reconnects += 1
        return web.json_response({})


@pytest.fixture
async def relay(world: Any) -> AsyncIterator[tuple[FakeRelay, Endpoint]]:
    fake = FakeRelay(world.report().model_dump(mode="json", by_alias=True))
    app = web.Application()
    app.add_routes([web.get("/status", fake.status), web.post("/reconnect", fake.reconnect)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]  # an asyncio server has sockets
    yield fake, Endpoint("127.0.0.1", "admin", port)
    await runner.cleanup()


class Woken:
    """Counts wake-ups and lets a test wait for the next one."""

    def __init__(self) -> None:
        self.count = 0
        self.event = asyncio.Event()

    def __call__(self, key: tuple[str, str]) -> None:
        assert key == KEY
        self.count += 1
        self.event.set()

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not true():
                self.event.clear()
                await self.event.wait()


async def test_a_change_at_the_relay_wakes_the_owner_and_rest_does_not(
    relay: tuple[FakeRelay, Endpoint],
) -> None:
    fake, endpoint = relay
    woken = Woken()
    watches = RelayWatches(woken, wait=30, spacing=5)
    watches.follow(KEY, "pod", endpoint)
    await woken.until(lambda: watches.view(KEY, "pod").status is not None)
    await fake.change(state="Dropped")
    await woken.until(lambda: _state(watches.view(KEY, "pod")) is RelayState.DROPPED)
    assert woken.count == 2
    assert fake.asked[0] == {}
    assert fake.asked[1]["wait"] == "30"
    assert set(fake.tokens) == {"Bearer admin"}
    await watches.close()


def _state(view: RelayView) -> RelayState | None:
    return view.status.state if view.status is not None else None


async def test_a_relay_that_stops_answering_is_told_within_the_second_failure(
    relay: tuple[FakeRelay, Endpoint],
) -> None:
    fake, endpoint = relay
    woken = Woken()
    watches = RelayWatches(woken, wait=30, spacing=5)
    watches.follow(KEY, "pod", endpoint)
    await woken.until(lambda: watches.view(KEY, "pod").status is not None)
    fake.answer = lambda: web.Response(status=500)
    await fake.change()
    await woken.until(lambda: watches.view(KEY, "pod").failures == 1)
    assert watches.view(KEY, "pod").status is not None
    assert not watches.view(KEY, "pod").answering
    fake.answer = None
    await woken.until(lambda: watches.view(KEY, "pod").answering)
    assert fake.asked[-2] == {}
    await watches.close()


async def test_only_the_newest_pod_of_an_owner_is_watched(relay: tuple[FakeRelay, Endpoint]) -> None:
    _, endpoint = relay
    woken = Woken()
    watches = RelayWatches(woken, wait=30, spacing=5)
    watches.follow(KEY, "one", endpoint)
    await woken.until(lambda: watches.view(KEY, "one").status is not None)
    watches.follow(KEY, "two", endpoint)
    await woken.until(lambda: watches.view(KEY, "two").status is not None)
    assert watches.view(KEY, "one") == RelayView()
    watches.leave(KEY)
    assert watches.view(KEY, "two") == RelayView()
    await watches.close()


async def test_a_watch_that_an_error_ended_is_logged_and_begun_anew_by_a_reconcile(
    relay: tuple[FakeRelay, Endpoint], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any) -> RelayStatus:
        raise ZeroDivisionError("never thought of")

    _, endpoint = relay
    woken = Woken()
    watches = RelayWatches(woken, wait=30, spacing=0.01)
    with monkeypatch.context() as patched:
        patched.setattr(Relay, "status", broken)
        watches.follow(KEY, "pod", endpoint)
        await woken.until(lambda: woken.count == 1)
    assert "default/time" in caplog.text
    assert "never thought of" in caplog.text
    watches.follow(KEY, "pod", endpoint)
    await woken.until(lambda: watches.view(KEY, "pod").status is not None)
    await watches.close()


async def test_the_order_to_reconnect_reaches_the_relay(relay: tuple[FakeRelay, Endpoint]) -> None:
    fake, endpoint = relay
    woken = Woken()
    watches = RelayWatches(woken, wait=30, spacing=5)
    watches.follow(KEY, "pod", endpoint)
    await watches.reconnect(KEY)
    await watches.reconnect(("default", "unknown"))
    assert fake.reconnects == 1
    await watches.close()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda: web.Response(text="no JSON"), "JSON"),
        (lambda: web.json_response({"instance": 1}), "instance"),
        (lambda: web.Response(text="[" * 5000), "recursion"),
        (lambda: web.Response(body=b" " * (5 * 1024 * 1024)), "bytes"),
    ],
)
async def test_an_answer_that_is_no_report_is_told_apart_from_silence(
    relay: tuple[FakeRelay, Endpoint], answer: Callable[[], web.Response], message: str
) -> None:
    fake, endpoint = relay
    fake.answer = answer
    async with Relay(endpoint) as client:
        with pytest.raises(UnreadableError, match=message):
            await client.status(None, 1, 1)


async def test_a_refusal_is_no_answer(relay: tuple[FakeRelay, Endpoint]) -> None:
    fake, endpoint = relay
    fake.answer = lambda: web.Response(status=401)
    async with Relay(endpoint) as client:
        with pytest.raises(UnreachableError, match="HTTP 401"):
            await client.status(None, 1, 1)


async def test_a_report_that_cannot_be_read_is_no_failure_to_answer_and_its_end_is_noticed(
    relay: tuple[FakeRelay, Endpoint],
) -> None:
    fake, endpoint = relay
    woken = Woken()
    watches = RelayWatches(woken, wait=30, spacing=0.01)
    fake.answer = lambda: web.json_response({"instance": 1})
    watches.follow(KEY, "pod", endpoint)
    await woken.until(lambda: watches.view(KEY, "pod").unreadable != "")
    assert watches.view(KEY, "pod").failures == 0
    assert not watches.view(KEY, "pod").unheard
    fake.answer = None
    await woken.until(lambda: watches.view(KEY, "pod").answering)
    assert watches.view(KEY, "pod").unreadable == ""
    await watches.close()


async def never(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def test_a_relay_that_hangs_is_told_once_a_second_question_stayed_unanswered(
    relay: tuple[FakeRelay, Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_operator.adapters.relay.OVERDUE_SECONDS", 0.1)
    fake, endpoint = relay
    woken = Woken()
    watches = RelayWatches(woken, wait=0.1, spacing=5)
    watches.follow(KEY, "pod", endpoint)
    await woken.until(lambda: watches.view(KEY, "pod").status is not None)
    fake.handler = never
    await fake.change()
    await woken.until(lambda: watches.view(KEY, "pod").failures == 1)
    assert watches.view(KEY, "pod").message == "no sign of life for 0.2 s"
    await watches.close()


async def test_a_sign_of_life_that_is_late_is_no_failure_if_the_relay_answers_when_asked_again(
    relay: tuple[FakeRelay, Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_operator.adapters.relay.OVERDUE_SECONDS", 0.1)
    monkeypatch.setattr("mcp_operator.adapters.relay.ALIVE_SECONDS", 5)
    fake, endpoint = relay  # which gives no signs of life at all
    async with Relay(endpoint) as client:
        known = await client.status(None, 20, 0.05)
        assert await client.status(known, 20, 0.05) == known
    assert [bool(query) for query in fake.asked] == [False, True, False]


async def test_a_relay_whose_signs_of_life_are_rare_may_be_later_with_them(
    relay: tuple[FakeRelay, Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_operator.adapters.relay.OVERDUE_SECONDS", 0.01)
    monkeypatch.setattr("mcp_operator.adapters.relay.ALIVE_SECONDS", 0.01)
    fake, endpoint = relay
    async with Relay(endpoint) as client:
        known = await client.status(None, 20, 0.4)
        fake.handler = never
        with pytest.raises(UnreachableError, match=r"no sign of life for 0\.5 s"):
            await client.status(known, 20, 0.4)


async def test_many_relays_together_give_no_more_signs_of_life_a_second_than_few(
    relay: tuple[FakeRelay, Endpoint],
) -> None:
    fake, endpoint = relay
    beats: list[str] = []
    all_ask = asyncio.Event()

    async def held(request: web.Request) -> web.StreamResponse:
        if "beat" not in request.query:
            return web.json_response(fake.document)
        beats.append(request.query["beat"])
        if len(beats) == 200:
            all_ask.set()
        return await never(request)

    fake.handler = held
    watches = RelayWatches(lambda _: None, wait=30, spacing=5)
    for number in range(200):
        watches.follow(("default", f"s{number}"), "pod", endpoint)
    await asyncio.wait_for(all_ask.wait(), 20)
    assert set(beats) == {"0.8"}
    await watches.close()


async def test_a_relay_that_gives_signs_of_life_may_take_its_time_and_one_that_falls_silent_hangs(
    relay: tuple[FakeRelay, Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_operator.adapters.relay.OVERDUE_SECONDS", 2)
    fake, endpoint = relay
    beats = many = 50  # which take longer than silence may

    async def beating(request: web.Request) -> web.StreamResponse:
        nonlocal beats
        assert request.query["beat"] == "0.05"
        answer = web.StreamResponse()
        await answer.prepare(request)
        for _ in range(beats):
            await answer.write(b"\n")
            await asyncio.sleep(0.05)
        if beats == many:
            await answer.write(json.dumps(fake.document).encode())
            beats = 1
            return answer
        await asyncio.Event().wait()
        return answer

    async with Relay(endpoint) as client:
        known = await client.status(None, 20, 0.05)
        fake.handler = beating
        assert await client.status(known, 20, 0.05) == known
        started = time.monotonic()
        with pytest.raises(UnreachableError, match=r"no sign of life for 2\.05 s") as raised:
            await client.status(known, 20, 0.05)
        assert raised.value.silent
        assert time.monotonic() - started < 10  # and not the 20 s of the whole answer


EXIT: Json = {"exitCode": 1, "reason": "Exited", "time": 1.0}
SESSION: Json = {"protocolVersion": "1", "serverInfo": {}, "capabilities": {}, "since": 1.0, "adopted": False}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"since": 1e300}, "since: "),
        ({"since": -1.0}, "since: "),
        ({"instance": "i" * 5000}, "instance: "),
        ({"revision": 10**30}, "revision: "),
        ({"clients": 10**30}, "clients: "),
        ({"handshakes": -1}, "handshakes: "),
        ({"toolCount": 10**30}, "toolCount: "),
        ({"toolsDigest": "d" * 5000}, "toolsDigest: "),
        ({"session": {**SESSION, "since": 1e300}}, "session.since: "),
        ({"exit": {**EXIT, "exitCode": 10**30}}, "exit.exitCode: "),
        ({"exit": {**EXIT, "signal": "S" * 40}}, "exit.signal: "),
        ({"exit": {**EXIT, "time": 1e300}}, "exit.time: "),
    ],
    ids=str,
)
async def test_a_report_beyond_its_bounds_is_none_and_the_field_is_named(
    relay: tuple[FakeRelay, Endpoint], change: Json, named: str
) -> None:
    fake, endpoint = relay
    fake.document |= change
    async with Relay(endpoint) as client:
        with pytest.raises(UnreadableError, match=named):
            await client.status(None, 1, 1)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
async def test_a_time_that_is_no_number_makes_no_report(
    relay: tuple[FakeRelay, Endpoint], value: str
) -> None:
    fake, endpoint = relay
    text = json.dumps({**fake.document, "since": 0.5}).replace("0.5", value)
    fake.answer = lambda: web.Response(text=text)
    async with Relay(endpoint) as client:
        with pytest.raises(UnreadableError, match="since"):
            await client.status(None, 1, 1)


async def test_an_answer_without_end_is_read_no_further_than_the_limit(
    relay: tuple[FakeRelay, Endpoint],
) -> None:
    fake, endpoint = relay
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b" " * 65_536)
            sent += 65_536

    fake.handler = endless
    async with Relay(endpoint) as client:
        with pytest.raises(UnreadableError, match="more than 4194304 bytes"):
            await client.status(None, 1, 1)
    assert sent < 3 * MAX_DOCUMENT


async def test_an_answer_that_trickles_is_given_up(
    relay: tuple[FakeRelay, Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_operator.adapters.relay.ANSWER_SECONDS", 0.1)
    fake, endpoint = relay

    async def trickle(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b" ")
            await asyncio.sleep(0.02)

    fake.handler = trickle
    async with Relay(endpoint) as client:
        with pytest.raises(UnreachableError):
            await asyncio.wait_for(client.status(None, 1, 1), 5)


async def test_a_small_answer_that_would_grow_is_not_unpacked(relay: tuple[FakeRelay, Endpoint]) -> None:
    fake, endpoint = relay
    packed = gzip.compress(b" " * 50_000_000)
    fake.answer = lambda: web.Response(body=packed, headers={"Content-Encoding": "gzip"})
    async with Relay(endpoint) as client:
        with pytest.raises(UnreadableError, match="JSON"):
            await client.status(None, 1, 1)
    assert fake.encodings == {"identity"}


async def test_a_relay_that_is_not_there_is_unreachable(unused_tcp_port: int) -> None:
    endpoint = Endpoint("127.0.0.1", "admin", unused_tcp_port)
    async with Relay(endpoint) as client:
        with pytest.raises(UnreachableError):
            await client.status(None, 1, 1)
        with pytest.raises(UnreachableError):
            await client.reconnect()


def test_addresses_of_either_family_become_urls() -> None:
    assert Endpoint("10.0.0.1", "t").url("/status") == "http://10.0.0.1:8081/status"
    assert Endpoint("fd00::1", "t").url("/status") == "http://[fd00::1]:8081/status"


def test_reports_of_newer_relays_with_unknown_fields_are_read(world: Any) -> None:
    document = world.report().model_dump(mode="json", by_alias=True)
    assert RelayStatus.model_validate({**document, "new": 1}) == world.report()
