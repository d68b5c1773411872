import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from mcp import Client

from relaykit.client import Client as RawClient
from relaykit.client import body
from relaykit.issuer import Issuer
from relaykit.pod import SCRIPTED, launcher_path
from relaykit.ports import free_port
from relaykit.waiting import eventually


@contextlib.asynccontextmanager
async def local(
    *options: str, command: list[str] | None = None, launcher: str | None = None
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """A relay on this machine, and the URL it announced."""
    environment = {**os.environ, "MCP_LAUNCHER": launcher or str(launcher_path())}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mcp_sidecar", "local", *options, "--"),
        *(command or [sys.executable, str(SCRIPTED)]),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(10):
            line = await process.stdout.readline()
        yield process, json.loads(line)["url"] if line else ""
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def test_the_mcp_client_library_works_through_a_local_relay() -> None:
    async with local() as (_, url), Client(url, mode="legacy") as client:
        tools = await client.list_tools()
        assert "echo" in {tool.name for tool in tools.tools}
        result = await client.call_tool("echo", {"text": "hello"})
        assert json.loads(result.content[0].text) == "hello"  # type: ignore[union-attr]  # a text content


async def test_clients_may_have_tokens_of_an_issuer_whose_keys_are_in_a_file(tmp_path: Path) -> None:
    issuer, file = Issuer(), tmp_path / "jwks.json"
    file.write_bytes(issuer.jwks())
    options = ("--jwt-issuer", issuer.issuer, "--jwt-audience", issuer.audience, "--jwks", str(file))
    async with local(*options) as (_, url):
        async with RawClient(url, None) as stranger:
            assert (await stranger.post({})).status_code == 401
        async with RawClient(url, issuer.token()) as client:
            await client.connect()
    async with local("--token", "x", *options) as (process, url):
        assert url == ""
        assert await process.wait() == 2


async def test_it_announces_its_url_as_one_json_line_and_leaves_no_process() -> None:
    port = free_port()
    async with local("--port", str(port), "--token", "secret", "--name", "mine") as (process, url):
        assert url == f"http://127.0.0.1:{port}/mcp"
        async with RawClient(url, None) as stranger:
            assert (await stranger.post({})).status_code == 401
        async with RawClient(url, "secret") as client:
            await client.connect()
            assert (await client.call("echo", text="x"))["result"]
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) == 2
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(10):
            assert await process.wait() == 0
        assert not [child for child in children if child.is_running()]


@pytest.mark.parametrize("end", ["terminate", "kill"])
async def test_no_process_of_any_client_is_left(end: str) -> None:
    async with local("--per-client", "--max-processes", "3") as (process, url):
        clients = [await RawClient(url, None).connect() for _ in range(3)]
        pids = {(await client.text("stats"))["pid"] for client in clients}
        for client in clients:
            await client.http.aclose()
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(pids) == 3
        assert pids < {child.pid for child in children}
        getattr(process, end)()

        async def gone() -> bool:
            return not [child for child in children if child.is_running()]

        await eventually(gone, 15)


async def test_it_may_be_called_by_the_names_it_was_given() -> None:
    async with (
        local("--allowed-host", "mine.example", "--allowed-host", "*.lan") as (_, url),
        RawClient(url, None) as client,
    ):
        for host, status in (("mine.example:80", 200), ("a.lan", 200), ("other.example", 403)):
            params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}}
            reply = await client.post(body("initialize", 1, **params), host=host)
            assert reply.status_code == status
        assert "--allowed-host" in reply.json()["error"]["message"]


async def test_it_serves_before_the_servers_handshake() -> None:
    started = time.monotonic()
    async with local(command=[sys.executable, str(SCRIPTED), "nothing"]) as (_, url):
        assert url
        assert time.monotonic() - started < 5


async def test_a_server_that_ignores_the_end_is_ended_too(tmp_path: Path) -> None:
    script = tmp_path / "stubborn.py"
    script.write_text(
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(60)\n"
    )
    async with local(command=[sys.executable, str(script)]) as (process, _):

        async def started() -> bool:
            return len(psutil.Process(process.pid).children(recursive=True)) == 2

        await eventually(started)
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(10):
            assert await process.wait() == 0
        assert not [child for child in children if child.is_running()]


@pytest.mark.parametrize("command", [[], ["--"], ["--", ""]])
async def test_a_missing_command_is_asked_for(command: list[str]) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mcp_sidecar", "local", "--port", "0", *command),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "MCP_LAUNCHER": str(launcher_path())},
    )
    try:
        async with asyncio.timeout(10):
            output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    assert (process.returncode, output) == (2, b"")
    assert "write the server's command after --" in errors.decode()


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["/no/such/program"], 127, "/no/such/program"),
        (["/"], 126, "is a directory"),
        ([sys.executable, "-c", "raise SystemExit(3)"], 3, "exited with code 3"),
        ([sys.executable, str(SCRIPTED), "exit"], 3, "no licence"),
    ],
)
async def test_a_server_that_ends_ends_the_relay_with_its_exit_code(
    command: list[str], code: int, words: str
) -> None:
    async with local(command=command) as (process, _):
        async with asyncio.timeout(10):
            _, errors = await process.communicate()
        assert process.returncode == code
        assert words in errors.decode()
        assert "Traceback (" not in errors.decode()


async def test_a_launcher_that_is_killed_ends_the_relay_and_the_open_calls() -> None:
    async with local() as (process, url), RawClient(url, None) as client:
        await client.connect()
        call = asyncio.create_task(client.call("sleep", 1, seconds=20))
        asked = 0

        async def the_server_has_it() -> bool:
            nonlocal asked
            asked += 1
            return bool((await client.text("stats"))["received"].count("tools/call") > asked)

        await eventually(the_server_has_it)
        (launcher,) = psutil.Process(process.pid).children()
        launcher.kill()
        assert (await call)["error"]["data"]["reason"] == "server_gone"
        async with asyncio.timeout(10):
            assert await process.wait() == 137


async def test_a_server_is_named_after_its_program_in_messages() -> None:
    command = [sys.executable, str(SCRIPTED), "answer"]
    async with local("--call-timeout", "0.1", command=command) as (_, url), RawClient(url, None) as client:
        await client.connect()
        answer = await client.call("sleep", seconds=5)
        assert "server 'scripted.py'" in answer["error"]["message"]


async def test_a_relay_that_is_killed_leaves_no_process() -> None:
    async with local() as (process, url):
        async with RawClient(url, None) as client:
            await client.connect()
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) == 2
        process.kill()

        async def gone() -> bool:
            return not [child for child in children if child.is_running()]

        await eventually(gone, 15)


@pytest.mark.parametrize(
    ("options", "launcher", "words"),
    [([], "/no/launcher", "MCP_LAUNCHER"), (["--host", "192.0.2.1"], None, "Cannot assign")],
)
async def test_what_is_missing_is_named(options: list[str], launcher: str | None, words: str) -> None:
    async with local(*options, launcher=launcher) as (process, _):
        _, errors = await process.communicate()
        assert process.returncode == 2
        assert words in errors.decode()
        assert "Traceback" not in errors.decode()


async def test_a_process_above_its_memory_limit_ends_beside_the_others() -> None:
    options = ("--per-client", "--process-memory-limit", "128Mi")
    async with local(*options) as (_, url), RawClient(url, None) as one, RawClient(url, None) as two:
        await one.connect()
        await two.connect()
        waiting = asyncio.create_task(one.call("sleep", 7, seconds=60))
        own = (await two.text("stats"))["pid"]
        eating = asyncio.create_task(one.call("eat", 8, mib=200))
        assert "memory limit of 128Mi" in (await waiting)["error"]["message"]
        await asyncio.gather(eating, return_exceptions=True)
        assert (await two.text("stats"))["pid"] == own


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--process-memory-limit", "1Gi"], "needs --per-client"),
        (["--per-client", "--process-memory-limit", "1G"], "'1G' is not a number of bytes above 0"),
        (["--per-client", "--process-memory-limit", "0"], "'0' is not a number of bytes above 0"),
    ],
)
async def test_a_memory_limit_that_makes_no_sense_is_refused(options: list[str], words: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mcp_sidecar", "local", *options, "--", "cat"), stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()
    assert process.returncode == 2
    assert words in said.decode()
