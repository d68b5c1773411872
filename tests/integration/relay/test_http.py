import asyncio
import json
from typing import Any

import httpx
import pytest

from mcp_sidecar.session import table
from mcp_sidecar.web import streams
from relaykit.client import Client, body
from relaykit.pod import ADMIN, ADMIN_TOKEN, TOKEN, Pod
from relaykit.waiting import eventually

ECHO = body("tools/call", 1, name="echo", arguments={"text": "x"})


async def every_method(client: Client, **headers: str | None) -> list[httpx.Response]:
    """POST, GET and DELETE with the same headers."""
    sent = client.headers(**headers)
    return [
        await client.http.request("POST", client.url, json=ECHO, headers=sent),
        await client.http.request("GET", client.url, headers=sent),
        await client.http.request("DELETE", client.url, headers=sent),
    ]


@pytest.mark.parametrize(
    "value", [None, "Bearer wrong", f"Basic {TOKEN}", TOKEN, "Bearer", f"Bearer {ADMIN_TOKEN}"]
)
async def test_without_the_token_nothing_is_read_and_nothing_ended(pod: Pod, value: str | None) -> None:
    client = await pod.connected()
    for reply in await every_method(client, authorization=value):
        assert reply.status_code == 401
        assert reply.content == b'{"error":"Unauthorized"}'
        assert reply.headers["www-authenticate"].startswith("Bearer")
    for reply in await every_method(
        client, authorization=value, mcp_session_id="nonsense", accept="text/plain"
    ):
        assert reply.status_code == 401
    assert (await client.call("echo", text="still here"))["result"]


async def test_the_scheme_of_the_token_may_have_any_case(pod: Pod) -> None:
    client = await pod.connected()
    assert (await client.post(ECHO, authorization=f"bearer {TOKEN}")).status_code == 200


async def test_without_a_token_set_everybody_may_come_in(make_pod: Any) -> None:
    pod = await make_pod(token=None)
    client = await pod.connected(token=None)
    assert (await client.call("echo", text="x"))["result"]


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("demo.default.svc.cluster.local:8080", True),
        ("Demo.Default.svc.cluster.local", True),
        ("localhost:1234", True),
        ("[::1]:8080", True),
        ("evil.example", False),
        ("demo.default.svc.cluster.local.evil.example", False),
        ("other.ingress.example", True),
        ("ingress.example", False),
    ],
)
async def test_only_known_hosts_are_served(make_pod: Any, host: str, allowed: bool) -> None:
    pod = await make_pod(allowed_hosts=("demo.default.svc.cluster.local", "*.ingress.example"))
    client = await pod.connected()
    reply = await client.post(ECHO, host=host)
    assert reply.status_code == (200 if allowed else 403)
    if not allowed:
        assert host in reply.json()["error"]["message"]
        assert "spec.session.allowedHosts" in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://localhost:3000", True),
        ("http://foreign.example", False),
        ("null", False),
        ("nonsense", False),
        (None, True),
    ],
)
async def test_foreign_pages_are_refused_before_any_work(pod: Pod, origin: str | None, allowed: bool) -> None:
    client = await pod.connected()
    post = await client.post(ECHO, origin=origin)
    assert post.status_code == (200 if allowed else 403)
    if not allowed:
        assert [reply.status_code for reply in await every_method(client, origin=origin)] == [403] * 3
        assert (await client.post(ECHO)).status_code == 200
        return
    headers = client.headers(origin=origin)
    async with client.http.stream("GET", client.url, headers=headers) as stream:
        assert stream.status_code == 200
    assert (await client.delete(origin=origin)).status_code == 200


async def test_requests_that_make_no_sense_get_the_status_that_says_so(pod: Pod) -> None:
    client = await pod.connected()
    big = body("tools/call", 1, name="echo", arguments={"text": "x" * 100})

    async def status(message: Any = ECHO, **headers: str | None) -> int:
        return (await client.post(message, **headers)).status_code

    assert await status(accept="text/html") == 406
    assert await status(accept=None) in (200, 406)
    assert await status(accept="application/json") == 200
    assert await status(accept="*/*") == 200
    assert await status(content_type="text/plain") == 415
    assert await status(content_type="application/json; charset=utf-8") == 200
    assert await status(mcp_protocol_version="1990-13-99") == 400
    assert await status(mcp_protocol_version="2026-07-28") == 400
    assert await status(mcp_protocol_version=None) == 200
    assert await status(mcp_session_id=None) == 400
    assert await status(mcp_session_id="nonsense") == 404
    assert await status(big) == 200
    assert (await client.http.put(client.url, headers=client.headers())).status_code == 405
    assert (
        await client.http.get(client.url, headers=client.headers(accept="application/json"))
    ).status_code == 406
    assert (
        await client.http.get(client.url.replace("/mcp", "/x"), headers=client.headers())
    ).status_code == 404


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (json.dumps([ECHO]).encode(), -32600),
        (b'"text"', -32600),
        (b"{}", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32602),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
    ],
)
async def test_bodies_that_are_no_message_are_refused(pod: Pod, data: bytes, code: int) -> None:
    client = await pod.connected()
    reply = await client.post(data)
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == code
    assert (await client.call("echo", text="x"))["result"]


async def test_a_message_above_the_limit_is_refused_whether_announced_or_not(make_pod: Any) -> None:
    pod = await make_pod(max_message_bytes=10_000)
    client = await pod.connected()
    data = json.dumps(body("tools/call", 1, name="echo", arguments={"text": "x" * 20_000})).encode()

    async def unannounced() -> Any:
        for start in range(0, len(data), 1000):
            yield data[start : start + 1000]

    assert (await client.post(data)).status_code == 413
    chunked = await client.http.post(client.url, content=unannounced(), headers=client.headers())
    assert chunked.status_code == 413
    assert (await client.call("echo", text="x"))["result"]


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2027-01-01", "2025-11-25"),
        ("x", "2025-11-25"),
        (None, "2025-11-25"),
    ],
)
async def test_each_client_negotiates_its_own_revision(pod: Pod, asked: str | None, given: str) -> None:
    client = pod.client()
    reply = await client.post(body("initialize", 1, **({"protocolVersion": asked} if asked else {})))
    assert reply.json()["result"]["protocolVersion"] == given


async def test_a_deleted_session_is_gone_for_good(pod: Pod, caplog: pytest.LogCaptureFixture) -> None:
    client, other = await pod.connected(), await pod.connected()
    call = asyncio.create_task(client.call("sleep", 1, seconds=5))
    await pod.in_flight(1)
    assert (await client.delete()).status_code == 200
    assert "ended" in (await call)["error"]["message"]
    assert (await client.delete()).status_code == 404
    reply = await client.post(ECHO)
    assert reply.status_code == 404
    error = reply.json()["error"]
    assert (reply.json()["id"], error["code"]) == (1, -32000)
    assert error["message"] == "Session not found. Please reinitialize."
    assert {k: v for k, v in error["data"].items() if k != "server_uptime_seconds"} == {
        "reason": "session_not_found",
        "action": "reinitialize_and_replay_once",
    }
    assert error["data"]["server_uptime_seconds"] >= 0
    stats = await other.text("stats")
    assert (len(stats["cancelled"]), stats["initialize"]) == (1, 1)
    assert [record for record in caplog.records if record.exc_info] == []


async def test_an_id_signed_by_another_server_is_unknown(make_pod: Any) -> None:
    first, second = await make_pod(), await make_pod(server_uid="uid-2")
    client = await first.connected()
    await first.until("Connected")
    client.url = second.url
    assert (await client.post(ECHO)).status_code == 404


async def test_an_idle_session_ends_and_one_with_a_stream_does_not(make_pod: Any) -> None:
    pod = await make_pod(idle_timeout=0.4)
    idle, streaming = await pod.connected(), await pod.connected()
    async with streaming.stream():
        async with asyncio.timeout(5):
            status = await pod.status()
            while status.clients > 1:
                status = await pod.status(status.revision, 5)
        assert (await idle.post(ECHO)).status_code == 404
        assert (await streaming.post(ECHO)).status_code == 200


async def test_above_the_limit_the_session_idle_longest_goes_and_never_one_in_use(make_pod: Any) -> None:
    pod = await make_pod(max_clients=2)
    first, second = await pod.connected(), await pod.connected()
    call = asyncio.create_task(first.call("sleep", 1, seconds=3))
    await pod.in_flight(1)
    third = await pod.connected()
    assert (await second.post(ECHO)).status_code == 404
    async with third.stream():
        reply = await pod.client().post(body("initialize", 1))
        assert reply.status_code == 503
        assert "in use" in reply.json()["error"]["message"]
    assert (await call)["result"]


async def test_a_newer_stream_replaces_the_older_one(pod: Pod) -> None:
    client = await pod.connected()
    async with client.stream() as first, client.stream() as second:
        async with asyncio.timeout(5):
            await first.ended.wait()
        await client.call("change")
        assert (await second.next())["method"] == "notifications/tools/list_changed"


async def test_quiet_streams_carry_comments(pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_sidecar.web.streams.KEEP_ALIVE_SECONDS", 0.1)
    client = await pod.connected()
    async with client.stream() as stream:
        await stream.commented(4)
        assert stream.waiting() == 0


def test_comments_come_well_within_the_twenty_seconds_that_proxies_allow() -> None:
    assert streams.KEEP_ALIVE_SECONDS <= 15
    assert table.QUIET_SECONDS <= 15


async def test_nothing_is_left_of_a_stream_that_its_client_closed(pod: Pod) -> None:
    client = await pod.connected()
    await client.call("echo", text="x")
    before = len(asyncio.all_tasks())
    for _ in range(5):
        async with client.stream() as stream:
            await stream.commented(1)

    async def rest() -> bool:
        return len(asyncio.all_tasks()) <= before

    await eventually(rest)


async def test_a_silent_call_becomes_a_stream_with_comments(
    make_pod: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_sidecar.session.table.QUIET_SECONDS", 0.1)
    monkeypatch.setattr("mcp_sidecar.web.streams.KEEP_ALIVE_SECONDS", 0.1)
    pod = await make_pod()
    client = await pod.connected()
    async with client.stream("POST", body("tools/call", 1, name="hold", arguments={})) as stream:
        assert stream.response.headers["content-type"] == "text/event-stream"
        assert stream.response.headers["x-accel-buffering"] == "no"
        await stream.commented(3)
        (await pod.holding())()
        assert (await stream.next())["result"]
    plain = await client.post(
        body("tools/call", 1, name="sleep", arguments={"seconds": 0.3}), accept="application/json"
    )
    assert plain.json()["result"]


async def test_a_client_that_wants_only_streams_gets_one(pod: Pod) -> None:
    client = await pod.connected()
    reply = await client.post(ECHO, accept="text/event-stream")
    assert reply.headers["content-type"] == "text/event-stream"
    assert '"id":1,"result"' in reply.text


async def test_the_admin_port_guards_what_only_the_operator_may_see(pod: Pod) -> None:
    for path in ("/healthz", "/readyz", "/metrics"):
        assert (await pod.admin("GET", path)).status_code == 200
    for method, path in (("GET", "/status"), ("POST", "/reconnect")):
        assert (await pod.admin(method, path)).status_code == 401
        assert (await pod.admin(method, path, authorization=f"Bearer {TOKEN}")).status_code == 401
    assert (await pod.admin("GET", "/status?after=x", **ADMIN)).status_code == 400
    assert (await pod.admin("POST", "/status", **ADMIN)).status_code == 405
    assert (await pod.admin("GET", "/nothing")).status_code == 404


async def test_metrics_count_calls_by_method_and_outcome(pod: Pod) -> None:
    client = await pod.connected()
    await client.call("echo", text="x")
    await client.post(ECHO, authorization="Bearer wrong")
    text = (await pod.admin("GET", "/metrics")).text
    assert 'mcp_relay_calls_total{method="tools/call",outcome="ok",tool="echo"} 1.0' in text
    assert 'mcp_relay_call_duration_seconds_count{method="tools/call"} 1.0' in text
    assert 'mcp_relay_requests_refused_total{reason="unauthorized"} 1.0' in text
    assert 'mcp_relay_upstream_state{state="Connected"} 1.0' in text
    assert "mcp_relay_clients 1.0" in text
    assert 'mcp_relay_upstream_events_total{event="handshake"} 1.0' in text


async def test_a_client_that_never_reads_its_stream_is_dropped_and_nobody_waits_for_it(pod: Pod) -> None:
    slow, other = await pod.connected(), await pod.connected()
    reader, writer = await asyncio.open_connection("127.0.0.1", pod.port, limit=1024)
    lines = [f"{name}: {value}" for name, value in slow.headers().items()]
    writer.write("\r\n".join(["GET /mcp HTTP/1.1", "host: localhost", *lines, "", ""]).encode())
    await reader.readuntil(b"\r\n\r\n")
    big = "y" * 500_000
    await slow.request("resources/subscribe", uri="a://b")
    for _ in range(40):
        answer = await other.call(
            "unrelated", method="notifications/resources/updated", params={"uri": "a://b", "x": big}
        )
        assert answer["result"]
    text = (await pod.admin("GET", "/metrics")).text
    assert 'mcp_relay_streams_dropped_total{kind="session"} 1.0' in text
    writer.close()
