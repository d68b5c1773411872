"""`mcpsrv` against a real cluster, as a person or a script uses it."""

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from clusterkit import kube as k
from clusterkit import manifests, node, shelves
from clusterkit.commandline import mcpsrv, start
from clusterkit.servers import Servers, condition, status
from mcpsrv.core import trial
from mcpsrv.core.configuration import jsonc
from mcpsrv.core.errors import ExitCode

Json = dict[str, Any]
PAT = f"ghp_{'0a1B' * 9}"
SIX = Path(__file__).parents[1] / "unit" / "mcpsrv" / "six.jsonc"


async def left_of_tests(kube: k.Kube, namespace: str) -> list[str]:
    """Everything that test copies have left in the namespace, whatever made it."""
    found = [
        *await kube.list(k.MCPSERVERS, namespace, trial.LABEL),
        *await kube.list(k.SECRETS, namespace, trial.LABEL),
    ]
    pods = [pod for pod in await kube.list(k.PODS, namespace) if "tried" in pod["metadata"]["name"]]
    return [item["metadata"]["name"] for item in [*found, *pods]]


def tried(command: tuple[str, ...] = manifests.RAW, **spec: Any) -> str:
    return yaml.safe_dump(manifests.mcpserver("tried", command, **spec))


async def test_a_test_reports_phases_tools_and_a_call_and_leaves_nothing(
    kube: k.Kube, namespace: str
) -> None:
    env = [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "key"}}}]
    secret = {"apiVersion": "v1", "kind": "Secret", **manifests.secret("keys", key="s3cret")}
    documents = f"{yaml.safe_dump(secret)}---\n{tried(env=env)}"
    words = ("test", "-f", "-", "--call", "echo", "text=hello", "-o", "json")
    done = await mcpsrv(namespace, *words, stdin=documents)
    assert done.code == ExitCode.OK, done.err
    (report,) = done.json()
    assert report["passed"] is True
    assert report["phases"][-1]["phase"] == "Connected"
    assert sum(step["seconds"] for step in report["phases"]) <= report["seconds"] + 0.1
    assert "echo" in report["tools"]
    assert report["call"]["isError"] is False
    assert "hello" in json.dumps(report["call"]["content"])
    assert await left_of_tests(kube, namespace) == []
    assert await kube.find(k.SECRETS, namespace, "keys") is None


async def test_a_test_of_a_server_that_dies_says_why_and_leaves_nothing(kube: k.Kube, namespace: str) -> None:
    done = await mcpsrv(namespace, "test", "-f", "-", stdin=tried((*manifests.BROKEN, "exits")))
    assert done.code == ExitCode.FAILED
    assert "tried: failed" in done.out
    assert "ProcessExited" in done.out
    assert "the database is not reachable" in done.out
    assert await left_of_tests(kube, namespace) == []


async def test_a_test_of_a_server_whose_secret_is_missing_does_not_wait_for_it(namespace: str) -> None:
    stdin = tried(envFrom=[{"secretRef": {"name": "nowhere"}}])
    done = await mcpsrv(namespace, "test", "-f", "-", "-o", "json", stdin=stdin, within=40)
    assert done.code == ExitCode.FAILED
    assert done.json()[0]["reason"] == "SecretNotFound"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, ExitCode.TERMINATED)]
)
async def test_an_interrupted_test_removes_its_copy(
    kube: k.Kube, namespace: str, number: signal.Signals, code: ExitCode
) -> None:
    async with kube.watch(k.MCPSERVERS, namespace, selector=trial.LABEL) as changes, asyncio.timeout(120):
        process = await start("test", "-f", "-", "-n", namespace)
        assert process.stdin
        process.stdin.write(tried((*manifests.BROKEN, "silent")).encode())
        process.stdin.close()
        await k.first(changes, lambda item: status(item, "phase") == "Connecting")
        process.send_signal(number)
        assert await process.wait() == code
    assert await left_of_tests(kube, namespace) == []


async def test_what_an_earlier_test_could_not_remove_is_removed_by_the_next(
    kube: k.Kube, namespace: str
) -> None:
    left = manifests.mcpserver("left-over")
    left["metadata"] |= {
        "labels": {trial.LABEL: "x"},
        "annotations": {trial.EXPIRES: "2020-01-01T00:00:00+00:00"},
    }
    await kube.apply(k.MCPSERVERS, namespace, left)
    done = await mcpsrv(namespace, "test", "-f", "-", stdin=tried(suspend=True))
    assert done.code == ExitCode.OK, done.err
    assert "removing left-over" in done.err
    await kube.gone(k.MCPSERVERS, namespace, "left-over")


async def test_a_file_that_the_api_server_refuses_is_wrong_usage(kube: k.Kube, namespace: str) -> None:
    done = await mcpsrv(namespace, "test", "-f", "-", stdin=tried(comand=["typo"]))
    assert done.code == ExitCode.USAGE
    assert 'unknown field "spec.comand"' in done.err
    assert await left_of_tests(kube, namespace) == []


async def test_tools_are_listed_and_called_with_arguments_of_the_schemas_types(servers: Servers) -> None:
    server = await servers.ready("callee")
    namespace = servers.namespace
    listed = await mcpsrv(namespace, "tools", "callee", "-o", "json")
    assert "echo" in [tool["name"] for tool in listed.json()]
    assert (await mcpsrv(namespace, "tools", "callee")).out.splitlines()[0]
    done = await mcpsrv(namespace, "call", "callee", "echo", "text=hello", "n:=5")
    assert done.code == ExitCode.OK, done.err
    assert "hello" in done.out
    again = await mcpsrv(namespace, "call", "callee", "echo", "--json", '{"text": "by json"}', "-o", "json")
    assert "by json" in json.dumps(again.json()["content"])
    missing = await mcpsrv(namespace, "call", "callee", "ecko")
    assert (missing.code, "did you mean echo" in missing.err) == (ExitCode.NOT_FOUND, True)
    nobody = await mcpsrv(namespace, "call", "calle", "echo")
    assert (nobody.code, "did you mean callee" in nobody.err) == (ExitCode.NOT_FOUND, True)
    assert status(await server.get(), "recovery", "restarts") == 0


async def test_the_list_tells_who_is_ready_and_why_others_are_not(servers: Servers) -> None:
    await servers.ready("fine")
    await servers.apply("waits", envFrom=[{"secretRef": {"name": "nowhere"}}])
    await servers.made[-1].until(lambda item: condition(item, "Accepted").get("status") == "False")
    done = await mcpsrv(servers.namespace, "list", "-o", "json")
    by_name = {item["name"]: item for item in done.json()}
    assert by_name["fine"]["ready"] is True
    assert by_name["fine"]["url"].startswith("http://mcp-fine.")
    assert (by_name["waits"]["ready"], by_name["waits"]["reason"]) == (False, "SecretNotFound")
    text = (await mcpsrv(servers.namespace, "list")).out
    assert re.search(r"^waits +no +Pending .*SecretNotFound", text, re.MULTILINE)


async def test_why_tells_what_happened_and_what_to_do(servers: Servers) -> None:
    server = await servers.apply("dies", (*manifests.BROKEN, "exits"), recovery={"maxRetries": 0})
    await server.failed()
    await server.event("BackoffExhausted")
    done = await mcpsrv(servers.namespace, "why", "dies")
    assert done.code == ExitCode.FAILED
    assert done.out.startswith(f"{servers.namespace}/dies: not Ready, phase Error")
    happened = done.out.partition("What happened")[2]
    assert happened.index("Created") < happened.index("ProcessExited") < happened.index("BackoffExhausted")
    assert "the database is not reachable" in done.out
    assert "mcpsrv restart dies" in done.out.partition("What to do")[2]
    told = (await mcpsrv(servers.namespace, "why", "dies", "-o", "json")).json()
    assert told["error"]["exitCode"] == 1


async def test_why_of_a_ready_server_ends_with_0(servers: Servers) -> None:
    await servers.ready("well")
    done = await mcpsrv(servers.namespace, "why", "well")
    assert (done.code, "What to do" in done.out) == (ExitCode.OK, False)
    assert "Ready" in done.out.splitlines()[0]


async def test_logs_are_the_servers_or_the_relays_and_follow_to_the_next_pod(servers: Servers) -> None:
    namespace = servers.namespace
    script = "for n in 1 2 3; do echo line $n >&2; done; exec " + " ".join(manifests.RAW)
    server = await servers.ready("talks", ("sh", "-c", script))
    done = await mcpsrv(namespace, "logs", "talks")
    assert done.code == ExitCode.OK
    assert len(done.out.splitlines()) >= 3
    assert (await mcpsrv(namespace, "logs", "talks", "--tail", "1")).out == done.out.splitlines(
        keepends=True
    )[-1]
    assert (await mcpsrv(namespace, "logs", "talks", "--relay")).out
    assert (await mcpsrv(namespace, "logs", "talks", "--previous")).code == ExitCode.NOT_FOUND
    process = await start("logs", "talks", "-f", "-n", namespace)
    assert process.stdout
    assert process.stderr
    async with asyncio.timeout(120):
        for _ in range(3):
            await process.stdout.readline()
        assert (await mcpsrv(namespace, "restart", "talks")).code == ExitCode.OK
        assert "mcp-talks-2 takes over" in (await process.stderr.readline()).decode()
        for _ in range(3):
            assert await process.stdout.readline()
        await server.delete()
        assert await process.wait() == ExitCode.NOT_FOUND


async def test_a_restart_waits_for_the_next_pod(servers: Servers) -> None:
    server = await servers.ready("again")
    done = await mcpsrv(servers.namespace, "restart", "again", "-o", "json")
    assert done.code == ExitCode.OK, done.err
    assert done.json()["ready"] is True
    assert status(await server.get(), "session", "epoch") == 2


@asynccontextmanager
async def connected(namespace: str, *words: str) -> AsyncIterator[Json]:
    """What `connect` prints as JSON, while it serves."""
    process = await start("connect", *words, "-n", namespace, "-o", "json")
    assert process.stdout
    try:
        async with asyncio.timeout(60):
            text = ""
            while not text.endswith("\n}\n"):
                text += (await process.stdout.readline()).decode()
        yield json.loads(text)
    finally:
        process.send_signal(signal.SIGINT)
        assert await process.wait() == ExitCode.INTERRUPTED


async def test_a_connection_outlives_the_pod(servers: Servers) -> None:
    await servers.ready("reached")
    async with connected(servers.namespace, "reached", "--client", "vscode") as told:
        entry = told["config"]["servers"]["reached"]
        assert entry["url"] == told["url"]
        async with httpx.AsyncClient(headers=entry["headers"], timeout=20) as http:
            assert (await ping(http, told["url"])).status_code == 200
            assert (await mcpsrv(servers.namespace, "restart", "reached")).code == ExitCode.OK
        async with httpx.AsyncClient(headers=entry["headers"], timeout=20) as http:
            assert (await ping(http, told["url"])).status_code == 200
        async with httpx.AsyncClient(timeout=20) as http:
            assert (await ping(http, told["url"])).status_code == 401


async def ping(http: httpx.AsyncClient, url: str) -> httpx.Response:
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    return await http.post(url, json=message, headers={"accept": "application/json, text/event-stream"})


@contextmanager
def image_words(folder: Path) -> Iterator[list[str]]:
    """What docker would run: an image that says itself what it starts, where a registry can be had."""
    if node.is_kind():
        yield ["--entrypoint", "python3", manifests.test_image(), "/servers/raw.py"]
        return
    with shelves.image(
        folder, {"Entrypoint": ["python3", "/servers/raw.py"], "Cmd": ["--tools", "2"]}
    ) as name:
        yield [name]


@pytest.fixture
def desktop(tmp_path: Path) -> Iterator[Path]:
    """A desktop's configuration of six servers, one of them an image that docker runs."""
    config = jsonc.parse(SIX.read_text(), SIX.name)
    del config["mcpServers"]["sequential_thinking"]
    with image_words(tmp_path) as words:
        args = ["run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", *words, "--tools", "3"]
        env = {"GITHUB_PERSONAL_ACCESS_TOKEN": PAT}
        config["mcpServers"]["github"] = {"command": "docker", "args": args, "env": env}
        file = tmp_path / "claude_desktop_config.json"
        file.write_text(json.dumps(config), encoding="utf-8")
        yield file


@pytest.mark.timeout(400)
@pytest.mark.serial
async def test_a_desktops_six_servers_are_imported_applied_and_all_ready(
    kube: k.Kube, fresh_namespace: str, desktop: Path
) -> None:
    words = ("import", str(desktop), "--apply", "--timeout", "330")
    done = await mcpsrv(fresh_namespace, *words, within=360)
    assert done.code == ExitCode.OK, done.err
    assert PAT not in done.out + done.err
    items = (await mcpsrv(fresh_namespace, "list", "-o", "json")).json()
    assert {item["name"]: item["ready"] for item in items} == dict.fromkeys(
        ["time", "everything", "memory", "github", "filesystem", "fetch"], True
    )
    github = await kube.get(k.MCPSERVERS, fresh_namespace, "github")
    assert PAT not in json.dumps(github)
    assert "extra-2" in [tool["name"] for tool in status(github, "tools")]
    names = await mcpsrv(fresh_namespace, "call", "github", "environment")
    assert "GITHUB_PERSONAL_ACCESS_TOKEN" in names.out
    path = "path=/Users/anna/Desktop"
    listed = await mcpsrv(fresh_namespace, "call", "filesystem", "list_directory", path)
    assert listed.code == ExitCode.OK, listed.err
    entities = 'entities:=[{"name": "a", "entityType": "b", "observations": []}]'
    assert (await mcpsrv(fresh_namespace, "call", "memory", "create_entities", entities)).code == ExitCode.OK
    now = await mcpsrv(fresh_namespace, "call", "time", "get_current_time", "timezone=Europe/Berlin")
    assert "Europe/Berlin" in now.out
