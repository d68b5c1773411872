"""The record of calls, and the ids by which a request is found again at client, log and server."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from relaykit.client import body
from relaykit.pod import Pod
from relaykit.stateless import Caller
from relaykit.waiting import eventually

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
HEADERS = {"x_request_id": "req-7", "traceparent": PARENT, "tracestate": "vendor=a"}

Read = Callable[[int], Any]


@pytest.fixture
def recorded(capfdbinary: pytest.CaptureFixture[bytes]) -> Read:
    """Waits for that many lines, which come soon after the answers; gives all since it was asked last."""
    raw: list[bytes] = []

    async def read(count: int) -> list[dict[str, Any]]:
        async def enough() -> bool:
            raw.append(capfdbinary.readouterr().out)
            return b"".join(raw).count(b"\n") >= count

        await eventually(enough)
        data = b"".join(raw)
        raw.clear()
        assert all(0x20 <= byte < 0x7F or byte == 0x0A for byte in data)
        return [json.loads(line) for line in data.splitlines()]

    return read


async def audited(make_pod: Any, mode: str = "answer", **settings: Any) -> Pod:
    pod: Pod = await make_pod(mode, audit=True, **settings)
    await pod.until("Connected")
    return pod


@pytest.mark.parametrize("mode", ["Shared", "PerClient"])
async def test_every_call_of_a_session_is_one_line_without_arguments(
    make_pod: Any, mode: str, recorded: Read
) -> None:
    pod = await audited(make_pod, session_mode=mode)
    client = await pod.connected()
    message = body("tools/call", 5, name="echo", arguments={"text": "hush-hush"})
    reply = await client.post(message, **HEADERS)
    assert reply.headers["x-request-id"] == "req-7"
    opened, called = await recorded(2)
    assert (opened["method"], opened["outcome"], "session" in opened) == ("initialize", "ok", False)
    assert called.pop("time").endswith("Z")
    assert 0 < called.pop("durationSeconds") < 20
    assert len(called.pop("session")) == 24
    assert called == {
        "event": "call", "subject": "bearer", "client": "127.0.0.1", "requestId": "req-7", "traceId": TRACE,
        "method": "tools/call", "tool": "echo", "outcome": "ok",
        "requestBytes": len(json.dumps(message)), "responseBytes": len(reply.content),
    }  # fmt: skip


@pytest.mark.parametrize("mode", ["answer", "stateless"])
async def test_calls_without_a_session_are_recorded_at_servers_of_both_kinds(
    make_pod: Any, mode: str, recorded: Read
) -> None:
    pod = await audited(make_pod, mode)
    caller = Caller(pod)
    assert (await caller.post(caller.message("tools/list"), **HEADERS)).headers["x-request-id"] == "req-7"
    assert "error" in await caller.request("no/such/method")
    assert "error" in (await caller.post(caller.message("tools/list"), mcp_method="ping")).json()
    lines = await recorded(3)
    assert [(line["method"], line["outcome"], line.get("code")) for line in lines] == [
        ("tools/list", "ok", None),
        ("no/such/method", "refused", -32601),
        ("tools/list", "refused", -32020),
    ]
    assert [(line.get("requestId"), line.get("traceId")) for line in lines] == [
        ("req-7", TRACE),
        (None, None),
        (None, None),
    ]


async def test_a_call_that_takes_too_long_is_told_as_such(make_pod: Any, recorded: Read) -> None:
    pod = await audited(make_pod, call_timeout=0.3)
    client = await pod.connected()
    await client.call("sleep", seconds=30)
    _, overdue = await recorded(2)
    assert (overdue["tool"], overdue["outcome"]) == ("sleep", "timeout")


async def test_ends_of_all_other_kinds_are_told_apart(make_pod: Any, recorded: Read) -> None:
    pod = await audited(make_pod, tools_deny=("stats",))
    client = await pod.connected()
    await client.call("stats")
    sleeping = asyncio.create_task(client.call("sleep", 77, seconds=30))
    await pod.in_flight(1)
    await client.notify("notifications/cancelled", requestId=77)
    await sleeping
    await client.request("resources/read", uri="file:///x")
    await client.call("die")
    lines = await recorded(5)
    assert [(line.get("tool"), line["outcome"]) for line in lines[1:]] == [
        ("stats", "refused"),
        ("sleep", "cancelled"),
        (None, "error"),
        ("die", "server_gone"),
    ]


async def test_hostile_names_stay_one_printable_line(make_pod: Any, recorded: Read) -> None:
    pod = await audited(make_pod)
    client = await pod.connected()
    await recorded(1)
    wicked = '\x1b[2J\n{"event":"call"}\r\x9b\x7f\u202e'
    await client.call(wicked)
    await client.request(wicked)
    named, method = await recorded(2)
    assert (named["tool"], method["method"]) == (wicked, wicked)
    for header in ("a b", "x" * 129, "a\tb"):
        reply = await client.post(body("ping", 9), x_request_id=header)
        assert "x-request-id" not in reply.headers
    assert ["requestId" in line for line in await recorded(3)] == [False] * 3


async def test_an_answer_as_a_stream_has_the_id_and_its_line(make_pod: Any, recorded: Read) -> None:
    pod = await audited(make_pod)
    client = await pod.connected()
    message = body("tools/call", 1, name="progress", arguments={}, _meta={"progressToken": "t"})
    reply = await client.post(message, x_request_id="r/1")
    assert reply.headers["content-type"] == "text/event-stream"
    assert reply.headers["x-request-id"] == "r/1"
    assert (await recorded(2))[1]["requestId"] == "r/1"


async def test_refusals_have_the_request_id_too(pod: Pod) -> None:
    client = await pod.connected()
    for changes in ({"authorization": "Bearer wrong"}, {"host": "evil.example"}, {"mcp_session_id": "no"}):
        reply = await client.post(body("ping", 1), x_request_id="r-2", **changes)
        assert reply.status_code in (401, 403, 404)
        assert reply.headers["x-request-id"] == "r-2"


async def test_the_server_gets_the_trace_context_of_the_request(make_pod: Any) -> None:
    wanted = {"traceparent": PARENT, "tracestate": "vendor=a"}
    pod = await make_pod()
    await pod.until("Connected")
    client = await pod.connected()
    reply = await client.post(body("vendor/echo", 1, a=1), **HEADERS)
    assert reply.json()["result"] == {"a": 1, "_meta": wanted}
    own = {"traceparent": PARENT.replace("b7", "c8")}
    reply = await client.post(body("vendor/echo", 2, _meta=own), **HEADERS)
    assert reply.json()["result"] == {"_meta": own}
    assert (await client.request("vendor/echo", a=1))["result"] == {"a": 1}
    modern = Caller(pod)
    reply = await modern.post(modern.message("vendor/echo"), **HEADERS)
    assert reply.json()["result"]["_meta"].items() >= wanted.items()


async def test_a_server_without_sessions_gets_it_from_clients_of_both_kinds(make_pod: Any) -> None:
    wanted = {"traceparent": PARENT, "tracestate": "vendor=a"}
    pod = await make_pod("stateless")
    await pod.until("Connected")
    client, modern = await pod.connected(), Caller(pod)
    await client.post(body("tools/call", 1, name="echo", arguments={}), **HEADERS)
    await modern.post(modern.message("tools/call", name="echo", arguments={}), **HEADERS)
    received = (await modern.text("stats"))["received"]
    found = [m["params"]["_meta"] for m in received if m.get("params", {}).get("name") == "echo"]
    assert [meta.items() >= wanted.items() for meta in found] == [True, True]


async def test_a_relay_without_audit_log_writes_nothing(
    pod: Pod, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    client = await pod.connected()
    assert "result" in await client.call("echo", text="x")
    assert capfdbinary.readouterr().out == b""
