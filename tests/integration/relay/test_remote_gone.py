"""Remote servers that are not there any more, or not for us: the status tells it."""

import threading
import time

import pytest

from mcp_sidecar.remote import link, stream
from relaykit.unruly import INITIALIZE, Exchange, Json, MakeRelay, Post, Unruly, came, ready
from relaykit.waiting import eventually


def page(status: int, kind: str) -> Post:
    """Answers like a proxy behind which there is nothing."""

    def post(http: Exchange, _message: Json) -> bool:
        http.page(status, kind, b"<p>nothing here</p>")
        return True

    return post


def without_session(http: Exchange, message: Json) -> bool:
    if message.get("method") != "initialize":
        return False
    http.result(message, INITIALIZE)
    return True


@pytest.mark.parametrize(
    ("status", "reason"),
    [(404, "RemoteRefused"), (410, "RemoteRefused"), (403, "RemoteDenied"), (200, "RemoteUnavailable")],
)
async def test_a_server_without_sessions_that_is_gone_is_told_and_comes_back(
    unruly: Unruly, relay: MakeRelay, monkeypatch: pytest.MonkeyPatch, status: int, reason: str
) -> None:
    monkeypatch.setattr(stream, "PING_SECONDS", 0.2)
    unruly.post = without_session
    pod = await ready(relay)
    await came(unruly, "ping", 2)
    unruly.post = page(status, "text/html")

    async def shown() -> bool:
        error = (await pod.status()).error
        return error is not None and error.reason == reason

    await eventually(shown, 15)
    unruly.post = without_session
    await pod.until("Connected")


async def test_a_server_that_knows_no_ping_loses_its_session_once_at_most(
    unruly: Unruly, relay: MakeRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "ping":
            return without_session(http, message)
        http.page(400, "text/plain", b"what?")
        return True

    monkeypatch.setattr(stream, "PING_SECONDS", 0.1)
    unruly.post = post
    pod = await ready(relay)
    await came(unruly, "ping", 6)
    assert (await pod.status()).state == "Connected"
    assert unruly.seen.count("initialize") == 2


async def test_a_server_that_refuses_slowly_is_asked_no_sooner_for_it(
    unruly: Unruly, relay: MakeRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "HELD_SECONDS", 0.05)

    def post(http: Exchange, _message: Json) -> bool:
        times.append(time.monotonic())
        threading.Event().wait(0.2)
        http.reply(401)
        return True

    times: list[float] = []
    unruly.post = post
    await relay(where={"slow": 1.0})
    await came(unruly, "initialize", 2)
    assert times[1] - times[0] > 1.0
