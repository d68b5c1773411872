"""Limits and audit log, with a clock of the test's own."""

import asyncio
import json
from typing import Any

import pytest

from mcp_sidecar.core import frames, record
from mcp_sidecar.core.bucket import NONE, Limits
from mcp_sidecar.core.modern import methods
from mcp_sidecar.metrics import Metrics
from mcp_sidecar.session.calls import RefusedError
from mcp_sidecar.session.guard import MAX_KNOWN, Audit, Guard, Visit, counted_for, source


class Desk:
    """A guard, its clock and what it wrote."""

    def __init__(self, limits: Limits = NONE, *, audit: bool = False) -> None:
        self.now = 1000.0
        self.metrics = Metrics()
        self.written: list[bytes] = []
        self.broken = False
        log = Audit(self.metrics, self._write) if audit else None
        self.guard = Guard(limits, log, self.metrics, lambda: self.now)

    def _write(self, data: bytes) -> None:
        if self.broken:
            raise BrokenPipeError(32, "Broken pipe")
        self.written.append(data)

    def enter(self, key: str = "one", method: str = "tools/call", **params: Any) -> Visit:
        text = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        frame = frames.parse(json.dumps(text).encode())
        return self.guard.enter(frame, key, {"subject": key}, {})

    def refused(self, key: str = "one") -> RefusedError:
        with pytest.raises(RefusedError) as caught:
            self.enter(key)
        return caught.value

    def lines(self) -> list[dict[str, Any]]:
        self.guard.close()
        return [json.loads(line) for line in b"".join(self.written).splitlines()]


async def test_a_client_over_its_rate_is_told_when_to_come_again_and_others_are_not_touched() -> None:
    desk = Desk(Limits(per_minute=6, burst=2))
    desk.enter()
    desk.enter()
    refusal = desk.refused()
    assert (refusal.status, refusal.retry_after) == (429, 10)
    assert refusal.data == {"reason": "rate", "retry_after_seconds": 10}
    assert str(refusal) == "Too many calls: this client may make 6 a minute. Try again in 10 s"
    desk.enter("other")
    desk.now += 9.5
    assert desk.refused().retry_after == 1
    desk.now += 0.5
    desk.enter()
    assert desk.metrics.counters["mcp_relay_requests_refused"] == {"rate": 2}


async def test_open_calls_are_counted_until_their_first_end() -> None:
    desk = Desk(Limits(concurrent=2))
    first, second = desk.enter(), desk.enter()
    refusal = desk.refused()
    assert (refusal.status, refusal.data["reason"], refusal.retry_after) == (429, "concurrency", 1)
    first.leave()
    first.leave()
    first.ended("ok")
    third = desk.enter()
    assert desk.refused().status == 429
    for visit in (second, third):
        visit.ended("ok")
    assert [desk.enter() for _ in range(2)]
    assert desk.metrics.counters["mcp_relay_requests_refused"] == {"concurrency": 2}


async def test_a_subscription_is_no_open_call() -> None:
    desk = Desk(Limits(concurrent=1))
    stream = desk.enter(method="subscriptions/listen")
    desk.enter()
    stream.leave()
    assert desk.refused().status == 429


async def test_no_number_of_clients_makes_the_memory_of_them_grow() -> None:
    desk = Desk(Limits(per_minute=1, burst=1))
    for number in range(MAX_KNOWN + 100):
        desk.enter(f"client {number}").ended("ok")
    assert len(desk.guard._spread) == MAX_KNOWN
    assert desk.guard._open == {}
    assert desk.refused(f"client {MAX_KNOWN}").status == 429


async def test_a_line_says_what_was_called_and_never_with_what() -> None:
    desk = Desk(audit=True)
    visit = desk.enter(name="send", arguments={"secret": "hush-hush"})
    desk.now += 0.25
    visit.ended("ok", 17)
    [line] = desk.lines()
    assert line.pop("time").endswith("Z")
    assert line == {
        "event": "call", "subject": "one", "method": "tools/call", "tool": "send", "outcome": "ok",
        "durationSeconds": 0.25, "responseBytes": 17,
    }  # fmt: skip
    assert b"hush" not in b"".join(desk.written)


async def test_refused_calls_are_recorded_too() -> None:
    desk = Desk(Limits(per_minute=1, burst=1), audit=True)
    desk.enter().ended("refused", code=-32602)
    desk.refused()
    assert [(line["outcome"], line["code"]) for line in desk.lines()] == [
        ("refused", -32602),
        ("limited", -32000),
    ]


@pytest.mark.parametrize(
    "name",
    [
        'x\n{"event":"call","subject":"forged"}',
        "\x1b[2J\x1b]0;owned\x07",
        "\x7f\x9b31m",
        "\u2028\u202e",
        "\ud800",
    ],
)
async def test_no_name_can_forge_a_line_or_reach_a_terminal(name: str) -> None:
    desk = Desk(audit=True)
    desk.enter(name=name).ended("ok")
    desk.enter(method=name).ended("ok")
    lines = desk.lines()
    assert (lines[0]["tool"], lines[1]["method"]) == (name, name)
    assert len(lines) == 2
    assert all(0x20 <= byte < 0x7F or byte == 0x0A for byte in b"".join(desk.written))


async def test_long_names_are_cut() -> None:
    desk = Desk(audit=True)
    desk.enter(name="n" * 10_000, method="m" * 10_000).ended("ok")
    desk.enter(name="n" * 10_000).ended("ok")
    first, second = desk.lines()
    assert (len(first["method"]), len(second["tool"])) == (record.MAX_TEXT, record.MAX_TEXT)


async def test_lines_of_one_turn_are_written_at_once_and_soon() -> None:
    desk = Desk(audit=True)
    for _ in range(3):
        desk.enter().ended("ok")
    assert desk.written == []
    await asyncio.sleep(0)
    assert [data.count(b"\n") for data in desk.written] == [3]
    assert desk.metrics.counters["mcp_relay_audit_lines"] == {"written": 3}


async def test_lines_that_nobody_takes_are_counted_and_end_nothing() -> None:
    desk = Desk(audit=True)
    desk.broken = True
    desk.enter().ended("ok")
    await asyncio.sleep(0)
    desk.broken = False
    desk.enter().ended("ok")
    assert len(desk.lines()) == 1
    assert desk.metrics.counters["mcp_relay_audit_lines"] == {"lost": 1, "written": 1}


@pytest.mark.parametrize(
    ("subject", "session", "peer", "shared", "key"),
    [
        ("bearer", "k1", "10.0.0.1", True, "session k1"),
        ("bearer", "", "10.0.0.1", True, "address 10.0.0.1"),
        ("anonymous", "", "", True, "address "),
        ("https://issuer alice", "k1", "10.0.0.1", False, "subject https://issuer alice"),
    ],
)
def test_limits_count_for_whom_can_be_told_apart(
    subject: str, session: str, peer: str, shared: bool, key: str
) -> None:
    assert counted_for(subject, session, peer, shared=shared) == key


def test_addresses_of_one_site_are_one_source() -> None:
    assert source("10.1.2.3") == "10.1.2.3"
    assert source("::ffff:10.1.2.3") == "10.1.2.3"
    assert source("2001:db8:1:2::1") == source("2001:db8:1:2:ffff::9")
    assert source("2001:db8:1:2::1") != source("2001:db8:1:3::1")
    assert source("fe80::1%eth0") == source("fe80::2")
    assert source("") == ""


@pytest.mark.parametrize("limits", [NONE, Limits(concurrent=2)])
async def test_of_clients_that_only_listen_nothing_is_kept(limits: Limits) -> None:
    desk = Desk(limits)
    for number in range(50):
        desk.enter(f"session {number}", method=methods.LISTEN).leave()
    call = desk.enter("one")
    assert dict(desk.guard._open) == {"one": 1}
    call.leave()
    assert dict(desk.guard._open) == {}
