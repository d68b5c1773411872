"""Remote servers of every kind: over SSE, over TLS, behind headers, and on the official library."""

import asyncio
import contextlib
import datetime as dt
import ipaddress
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from mcp import Client as LibraryClient

from mcp_sidecar.core.target import Header
from relaykit.pod import ROOT, Pod
from relaykit.ports import free_port
from relaykit.remote import Far, listed, pod_for, target
from relaykit.waiting import eventually

MakePod = Callable[..., Awaitable[Pod]]
LIBRARY = ROOT / "tests/e2e/servers/remote.py"


async def told(pod: Pod, reason: str) -> str:
    """The message of the status, once it has this reason."""

    async def shown() -> bool:
        error = (await pod.status()).error
        return error is not None and error.reason == reason

    await eventually(shown, 15)
    error = (await pod.status()).error
    assert error is not None
    return error.message


# SSE, revision 2024-11-05.


async def test_a_server_that_speaks_only_sse_is_found_out(near: MakePod, far: Far) -> None:
    pod = await near("/sse")
    await pod.until("Connected")
    client = await pod.connected()
    answers = await asyncio.gather(*(client.text("echo", n=n) for n in range(20)))
    assert answers == [{"n": n} for n in range(20)]
    assert await far.count("initialize") == 2  # the first one was refused: 404


async def test_sse_alone_can_be_asked_for(near: MakePod, far: Far) -> None:
    pod = await near("/sse", where={"transport": "SSE"})
    await pod.until("Connected")
    assert await far.count("initialize") == 1


async def test_an_sse_server_that_restarts_gets_one_new_session(near: MakePod, far: Far) -> None:
    pod = await near("/sse")
    await pod.until("Connected")
    client = await pod.connected()
    far.kill()
    await pod.until("Dropped")
    await far.start()
    answers = await asyncio.gather(*(client.call("count") for _ in range(20)))
    assert all("result" in answer for answer in answers), answers[0]
    told = await far.stats()
    assert told["seen"].count("initialize") == 2
    assert told["counter"] == 20


async def test_an_endpoint_on_another_server_is_not_used(near: MakePod, far: Far) -> None:
    await far.control(endpoint="http://127.0.0.2:1/messages")
    pod = await near("/sse", where={"transport": "SSE"})
    assert "spec.remote.url" in await told(pod, "RemoteRefused")


async def test_what_is_no_mcp_server_is_told(near: MakePod) -> None:
    pod = await near("/nothing")
    assert "HTTP 404" in await told(pod, "RemoteRefused")


# Headers.


async def test_headers_from_files_go_with_every_request_and_a_new_value_is_taken_up(
    tmp_path: Path, far: Far
) -> None:
    header = Header("Authorization", "remote-header-0", "Bearer ")
    pod = pod_for(tmp_path, target(far.url, headers=(header,)))
    value = tmp_path / "secrets" / "remote-header-0"
    value.write_text("first-value\n")
    await pod.relay()
    try:
        await listed(pod)  # the relay itself has nothing more to send
        client = await pod.connected()
        await client.call("echo")
        value.write_text("second-value")
        await client.call("echo")
        seen = [headers["authorization"] for headers in (await far.stats())["headers"]]
        assert set(seen[:-1]) == {"Bearer first-value"}
        assert seen[-1] == "Bearer second-value"
    finally:
        await pod.stop()


async def test_secret_values_are_hidden_in_what_the_server_says(tmp_path: Path, far: Far) -> None:
    await far.control(title="I know your-secret-value")
    header = Header("X-Key", "remote-header-0")
    pod = pod_for(tmp_path, target(far.url, headers=(header,)))
    (tmp_path / "secrets" / "remote-header-0").write_text("your-secret-value")
    await pod.relay()
    try:
        await pod.until("Connected")

        async def described() -> bool:
            session = (await pod.status()).session
            return session is not None and session.server_info.get("title") == "I know ***"

        await eventually(described)
    finally:
        await pod.stop()


async def test_no_caller_learns_a_secret_that_the_server_repeats(tmp_path: Path, far: Far) -> None:
    pod = pod_for(tmp_path, target(far.url, headers=(Header("X-Key", "remote-header-0"),)))
    (tmp_path / "secrets" / "remote-header-0").write_text("your-secret-value")
    await pod.relay()
    try:
        await pod.until("Connected")
        client = await pod.connected()
        order = {"method": "tools/call", "times": 1, "status": 403, "body": "no: your-secret-value"}
        await far.control(refuse=[order])
        message = (await client.call("echo"))["error"]["message"]
        assert "no: ***" in message
        assert "your-secret-value" not in message
    finally:
        await pod.stop()


async def test_a_header_without_its_file_is_told_by_its_name(tmp_path: Path, far: Far) -> None:
    pod = pod_for(tmp_path, target(far.url, headers=(Header("X-Key", "absent"),)))
    await pod.relay()
    try:
        assert "X-Key" in await told(pod, "RemoteDenied")
        assert (await far.stats())["seen"] == []
    finally:
        await pod.stop()


async def test_a_server_that_wants_other_headers_is_asked_again_only_slowly(near: MakePod, far: Far) -> None:
    await far.control(refuse=[{"times": 1, "status": 401, "body": "no"}])
    pod = await near(where={"slow": 2.0})  # for so long the refusal is to be seen
    assert "spec.remote.headersFrom" in await told(pod, "RemoteDenied")
    await pod.until("Connected")
    assert await far.count("initialize") == 2


# TLS.


def certificate(directory: Path) -> tuple[str, str]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "far")])
    now = dt.datetime.now(dt.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    places = directory / "far.crt", directory / "far.key"
    places[0].write_bytes(built.public_bytes(serialization.Encoding.PEM))
    places[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return str(places[0]), str(places[1])


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Far]:
    """A server over TLS, whose certificate stands in far.crt."""
    server = Far(*certificate(tmp_path))
    await server.start()
    yield server
    await server.stop()


async def test_a_certificate_of_an_own_ca_is_accepted_only_if_it_is_named(
    tmp_path: Path, guarded: Far
) -> None:
    pod = pod_for(tmp_path / "without", target(guarded.url))
    await pod.relay()
    try:
        assert "certificate" in await told(pod, "RemoteUnreachable")
        assert (await guarded.stats())["seen"] == []
    finally:
        await pod.stop()
    pod = pod_for(tmp_path / "with", target(guarded.url, ca_file="ca.crt"))
    (tmp_path / "with" / "secrets" / "ca.crt").write_bytes((tmp_path / "far.crt").read_bytes())
    await pod.relay()
    try:
        await pod.until("Connected")
        client = await pod.connected()
        answer = await client.call("big", bytes=3 * 1024 * 1024)
        assert len(answer["result"]["content"][0]["text"]) == 3 * 1024 * 1024
    finally:
        await pod.stop()


# The official library.


@contextlib.asynccontextmanager
async def library(*options: str) -> AsyncIterator[str]:
    """A server of the official library; where it is."""
    port = free_port()
    process = await asyncio.to_thread(
        subprocess.Popen, [sys.executable, str(LIBRARY), "--port", str(port), *options]
    )

    async def listening() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return False
        writer.close()
        return True

    try:
        await eventually(listening, 30)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("options", "path", "protocol"),
    [((), "/mcp", "Auto"), (("--sse",), "/sse", "Auto"), ((), "/mcp", "Modern")],
    ids=["Streamable HTTP", "SSE", "without sessions"],
)
async def test_a_server_of_the_official_library(
    tmp_path: Path, options: tuple[str, ...], path: str, protocol: str
) -> None:
    async with library(*options) as base:
        pod = pod_for(tmp_path, target(base + path), protocol=protocol, token=None)
        await pod.relay()
        try:
            await pod.until("Connected", 20)
            async with LibraryClient(pod.url, mode="legacy") as client:
                tools = await client.list_tools()
                assert [tool.name for tool in tools.tools] == ["echo", "whoami", "slow"]
                result: Any = await client.call_tool("echo", {"text": "hello"})
                assert result.content[0].text == "hello"
        finally:
            await pod.stop()


# Messages.


async def arrived(servers: list[Far]) -> int:
    """How many messages the servers have seen."""
    return sum([len((await server.stats())["seen"]) for server in servers])


@pytest.fixture
async def two() -> AsyncIterator[list[Far]]:
    servers = [Far(), Far()]
    for server in servers:
        await server.start()
        await server.control(streams=False)
    yield servers
    for server in servers:
        await server.stop()


async def test_8_calls_over_2_servers_take_14_messages_with_held_sessions(
    tmp_path: Path, two: list[Far]
) -> None:
    pods = [pod_for(tmp_path / str(n), target(server.url)) for n, server in enumerate(two)]
    try:
        for pod in pods:
            await pod.relay()
            await listed(pod)
        for number in range(8):
            assert "result" in await (await pods[number % 2].connected()).call("echo")
        assert await arrived(two) == 14
    finally:
        for pod in pods:
            await pod.stop()


async def test_the_same_takes_38_messages_with_a_session_for_each_call(two: list[Far]) -> None:
    for server in two:
        async with LibraryClient(server.url, mode="legacy") as client:
            await client.list_tools()
    for number in range(8):
        async with LibraryClient(two[number % 2].url, mode="legacy") as client:
            await client.call_tool("echo", {})
    assert await arrived(two) == 38
