"""From a cluster without the operator to the first answer of a tool: README.md's three commands, timed."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clusterkit import kube as k
from clusterkit import node, release
from clusterkit.commandline import mcpsrv
from devcluster.layout import REPOSITORY
from mcpsrv.core.errors import ExitCode

LIMIT_SECONDS = 300
CONFIG = {"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}


@pytest.fixture
async def install(kube: k.Kube, tmp_path: Path) -> AsyncIterator[tuple[str, ...]]:
    """The command that installs the operator as it was; it is not installed, but will be again afterwards."""
    name, namespace = await release.named(kube)
    values = tmp_path / "values.json"
    values.write_text(
        await asyncio.to_thread(node.helm, "get", "values", name, "-n", namespace, "-o", "json")
    )
    where = (
        name,
        str(REPOSITORY / "helm"),
        "-n",
        namespace,
        "--create-namespace",
        "--wait",
        "-f",
        str(values),
    )
    await asyncio.to_thread(node.helm, "uninstall", name, "-n", namespace, "--wait")
    yield ("install", *where)
    await asyncio.to_thread(node.helm, "upgrade", "--install", *where)


@pytest.mark.serial
@pytest.mark.timeout(LIMIT_SECONDS + 120)
async def test_a_newcomer_gets_the_first_answer_with_three_commands_in_five_minutes(
    install: tuple[str, ...], fresh_namespace: str, tmp_path: Path
) -> None:
    config = tmp_path / "claude_desktop_config.json"
    config.write_text(json.dumps(CONFIG), encoding="utf-8")
    began = time.monotonic()

    await asyncio.to_thread(node.helm, *install)
    installed = time.monotonic()
    imported = await mcpsrv(fresh_namespace, "import", str(config), "--apply", within=LIMIT_SECONDS)
    ready = time.monotonic()
    called = await mcpsrv(fresh_namespace, "call", "time", "get_current_time", "timezone=Europe/Berlin")

    took = time.monotonic() - began
    print(f"installed {installed - began:.1f} s, ready {ready - installed:.1f} s, in all {took:.1f} s")
    assert imported.code == ExitCode.OK, imported.err
    assert called.code == ExitCode.OK, called.err
    assert "Europe/Berlin" in called.out
    assert took < LIMIT_SECONDS
