"""The Service must lead to the pod before the status says so."""

import asyncio
import socket
from collections.abc import Callable

import pytest

from mcp_operator.adapters import tcp
from mcp_operator.handlers import doors
from mcp_operator.handlers.doors import Doors

KEY = ("default", "time")
NOWHERE = ("127.0.0.1", 1)


class Woken:
    def __init__(self) -> None:
        self.keys: list[tuple[str, str]] = []
        self.event = asyncio.Event()

    def __call__(self, key: tuple[str, str]) -> None:
        self.keys.append(key)
        self.event.set()


async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def test_a_door_opens_when_something_listens_and_wakes_the_owner_once(unused_tcp_port: int) -> None:
    woken = Woken()
    found = Doors(woken)
    assert not found.is_open(KEY, "pod", ("127.0.0.1", unused_tcp_port), NOWHERE)
    assert not found.is_open(KEY, "pod", ("127.0.0.1", unused_tcp_port), NOWHERE)
    server = await asyncio.start_server(hang_up, "127.0.0.1", unused_tcp_port)
    await asyncio.wait_for(woken.event.wait(), 5)
    assert found.is_open(KEY, "pod", ("127.0.0.1", unused_tcp_port), NOWHERE)
    assert woken.keys == [KEY]
    server.close()
    await found.close()


async def test_a_connection_request_that_is_lost_is_made_anew_before_tcp_repeats_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries: list[float] = []
    touch = tcp.touch

    async def noted(host: str, port: int, seconds: float) -> None:
        tries.append(seconds)
        await touch(host, port, seconds)

    monkeypatch.setattr(tcp, "touch", noted)
    woken = Woken()
    found = Doors(woken)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.socket() as first:
        first.connect(full.getsockname())  # the queue is full: what comes now is lost without a word
        assert not found.is_open(KEY, "pod", full.getsockname(), NOWHERE)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(woken.event.wait(), 0.2)
        full.accept()[0].close()
        await asyncio.wait_for(woken.event.wait(), 5)
    # TCP itself would have asked again after a second: the lost ones were given up long before that.
    assert len(tries) > 2
    assert max(tries[:2]) < 0.1
    await found.close()


async def test_a_try_that_an_error_ends_is_logged_and_does_not_hold_up_the_status(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> None:
        raise ZeroDivisionError("never thought of")

    monkeypatch.setattr(tcp, "touch", broken)
    woken = Woken()
    found = Doors(woken)
    assert not found.is_open(KEY, "pod", ("127.0.0.1", 1), NOWHERE)
    await asyncio.wait_for(woken.event.wait(), 5)
    assert found.is_open(KEY, "pod", ("127.0.0.1", 1), NOWHERE)
    assert "never thought of" in caplog.text
    await found.close()


async def test_another_pod_or_a_shut_door_is_tried_anew(unused_tcp_port: int) -> None:
    woken = Woken()
    found = Doors(woken)
    server = await asyncio.start_server(hang_up, "127.0.0.1", unused_tcp_port)
    for uid in ("one", "two", "two"):
        woken.event.clear()
        assert not found.is_open(KEY, uid, ("127.0.0.1", unused_tcp_port), NOWHERE)
        await asyncio.wait_for(woken.event.wait(), 5)
        assert found.is_open(KEY, uid, ("127.0.0.1", unused_tcp_port), NOWHERE)
        if uid == "two":
            found.shut(KEY)
    server.close()
    await found.close()


async def test_an_operator_that_cannot_reach_services_does_not_hold_up_the_status(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(doors, "PATIENCE_SECONDS", 0.1)
    woken = Woken()
    found = Doors(woken)
    found.is_open(KEY, "pod", NOWHERE, NOWHERE)
    await asyncio.wait_for(woken.event.wait(), 5)
    assert found.is_open(KEY, "pod", NOWHERE, NOWHERE)
    assert "cannot be reached from here" in caplog.text
    await found.close()


async def test_an_operator_that_reaches_services_waits_until_this_one_leads_to_the_pod_that_works(
    unused_tcp_port_factory: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(doors, "PATIENCE_SECONDS", 0.1)
    woken = Woken()
    found = Doors(woken)
    service, pod = ("127.0.0.1", unused_tcp_port_factory()), ("127.0.0.1", unused_tcp_port_factory())
    works = await asyncio.start_server(hang_up, *pod)
    found.is_open(KEY, "another", pod, pod)
    await asyncio.wait_for(woken.event.wait(), 5)
    woken.event.clear()

    assert not found.is_open(KEY, "pod", service, pod)
    async with asyncio.timeout(10):
        while "does not lead to its pod" not in caplog.text:  # noqa: ASYNC110 - a log tells nobody
            await asyncio.sleep(0.01)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(woken.event.wait(), 0.3)
    assert not found.is_open(KEY, "pod", service, pod)
    taken_up = await asyncio.start_server(hang_up, *service)
    await asyncio.wait_for(woken.event.wait(), 5)
    assert found.is_open(KEY, "pod", service, pod)
    for server in (works, taken_up):
        server.close()
    await found.close()
