"""The operator as a process against an API server whose watches end in every way: nothing stays unseen."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from apikit.server import GONE, ApiServer, served

Json = dict[str, Any]
# An operator takes a while to start where the machine is busy.
SECONDS = 40
pytestmark = pytest.mark.timeout(180)


def mcpserver(name: str) -> Json:
    return {
        "apiVersion": "mcp-session.dev/v1alpha1",
        "kind": "MCPServer",
        "metadata": {"namespace": "default", "name": name},
        "spec": {"command": ["uvx", "mcp-server-time"]},
    }


@dataclass
class Running:
    """The operator, and the API server that it talks to."""

    api: ApiServer
    process: asyncio.subprocess.Process
    environment: dict[str, str]

    def pods(self) -> set[str]:
        return {name for _, name in self.api.objects["pods"]}

    def phase(self) -> Any:
        return self.api.objects["mcpservers"]["default", "time"].get("status", {}).get("phase")

    async def told(self, name: str, pod: str) -> None:
        """Wait until the status of a server names its pod."""

        def names_it() -> bool:
            status = self.api.objects["mcpservers"]["default", name].get("status") or {}
            return bool(status.get("session", {}).get("podName") == pod)

        await self.api.until(names_it, SECONDS)

    async def made(self, *names: str) -> None:
        await self.api.until(lambda: set(names) <= self.pods(), SECONDS)

    async def watching(self, plural: str, times: int = 1) -> None:
        await self.api.until(
            lambda: self.api.opened[plural] >= times and bool(self.api.watches[plural]), SECONDS
        )


# The operator as it is, but for the time after which a watch that says nothing is renewed.
QUICK = """
from mcp_operator import __main__, main
main.SILENCE_SECONDS = 2.0
raise SystemExit(__main__.start())
"""


@pytest.fixture
def program() -> tuple[str, ...]:
    return ("-m", "mcp_operator")


@pytest.fixture
async def running(
    tmp_path: Path, unused_tcp_port_factory: Callable[[], int], program: tuple[str, ...]
) -> AsyncIterator[Running]:
    async with served() as (api, port):
        await api.put("mcpservers", mcpserver("time"))
        config = {
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "current-context": "x",
        }
        (tmp_path / "config").write_text(json.dumps(config), encoding="utf-8")
        environment = os.environ | {
            "KUBECONFIG": str(tmp_path / "config"),
            "MCP_OPERATOR_HEALTH_PORT": str(unused_tcp_port_factory()),
            "MCP_OPERATOR_METRICS_PORT": str(unused_tcp_port_factory()),
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-X", "dev", *program, env=environment, stderr=asyncio.subprocess.PIPE
        )
        found = Running(api, process, environment)
        try:
            await found.made("mcp-time-1")
            for plural in ("mcpservers", "pods"):
                await found.watching(plural)
            yield found
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


@pytest.mark.parametrize("error", [GONE, None], ids=["410 Gone", "a broken connection"])
async def test_what_is_made_while_a_watch_is_away_is_seen(running: Running, error: Json | None) -> None:
    before = running.api.opened["mcpservers"]
    await running.api.put("mcpservers", mcpserver("missed"), silent=True)
    await running.api.end_watches("mcpservers", error)
    await running.made("mcp-missed-1")
    await running.watching("mcpservers", before + 1)
    await running.api.put("mcpservers", mcpserver("afterwards"))
    await running.made("mcp-afterwards-1")


@pytest.mark.parametrize("error", [GONE, None], ids=["410 Gone", "a broken connection"])
async def test_a_pod_that_goes_while_a_watch_is_away_is_made_again(
    running: Running, error: Json | None
) -> None:
    pod = running.api.objects["pods"]["default", "mcp-time-1"]
    up = {"state": {"running": {"startedAt": "2026-01-31T12:00:00Z"}}}
    await running.api.put(
        "pods",
        {
            **pod,
            "status": {
                "phase": "Running",
                "podIP": "127.0.0.1",  # where no relay answers
                "initContainerStatuses": [{"name": "relay", **up}],
                "containerStatuses": [{"name": "server", **up}],
            },
        },
    )
    await running.api.until(lambda: running.phase() == "Connecting", SECONDS)
    await running.api.remove("pods", "mcp-time-1", silent=True)
    await running.api.end_watches("pods", error)
    await running.made("mcp-time-2")


@pytest.mark.parametrize("program", [("-c", QUICK)], ids=["renewed after 2 s"])
async def test_a_watch_that_went_deaf_without_a_word_is_renewed(running: Running) -> None:
    running.api.deafen("mcpservers")
    await running.api.put("mcpservers", mcpserver("unheard"))
    await running.made("mcp-unheard-1")


async def test_a_second_operator_makes_nothing_twice(
    running: Running, unused_tcp_port_factory: Callable[[], int]
) -> None:
    ports = {f"MCP_OPERATOR_{name}_PORT": str(unused_tcp_port_factory()) for name in ("HEALTH", "METRICS")}
    await running.told("time", "mcp-time-1")
    before = running.api.opened["pods"]
    second = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mcp_operator", env=running.environment | ports, stderr=asyncio.subprocess.PIPE
    )
    try:
        await running.watching("pods", before + 1)
        await running.api.quiet(1.5)  # it has read what there is
        await running.api.remove("pods", "mcp-time-1")
        await running.made("mcp-time-2")
        await running.api.quiet(1.5)  # the slower one has asked for its pod, too
        made = [event["object"]["metadata"]["name"] for _, event in running.api.history["pods"]]
        assert sorted(set(made)) == ["mcp-time-1", "mcp-time-2"]
        await running.api.put("mcpservers", mcpserver("afterwards"))
        await running.made("mcp-afterwards-1")
    finally:
        second.terminate()
        _, said = await second.communicate()
    assert (second.returncode, b"Traceback" in said) == (0, False), said.decode()


async def test_an_operator_that_ends_leaves_nothing_open(running: Running) -> None:
    running.process.terminate()
    _, said = await asyncio.wait_for(running.process.communicate(), SECONDS)
    assert running.process.returncode == 0, said.decode()
    for complaint in (b"Unclosed", b"ResourceWarning", b"Traceback", b"never awaited"):
        assert complaint not in said, said.decode()
