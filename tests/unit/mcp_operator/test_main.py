"""The operator as a whole: it says what it waits for until it serves."""

import asyncio
import json
import os
import resource
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import kopf
import pytest
from kopf._cogs.clients.watching import infinite_watch

from mcp_operator import __main__ as entry
from mcp_operator import main
from mcp_operator.adapters.errors import RefusedError, UnavailableError
from mcp_operator.adapters.kinds import SECRETS, SERVERS, Kind
from mcp_operator.adapters.kube import Kube
from mcp_operator.handlers import audit
from mcp_operator.settings import Settings

Json = dict[str, Any]


class Api:
    """An API server that lacks what the test says; each lack is told once, then it waits to be ended."""

    def __init__(self) -> None:
        self.crd: list[bool | Exception] = [True]
        self.refused: set[Kind] = set()
        self.asked = asyncio.Event()

    async def served(self, kind: Kind) -> bool:
        assert kind is SERVERS
        found = self.crd.pop(0) if len(self.crd) > 1 else self.crd[0]
        if isinstance(found, Exception):
            self.asked.set()
            raise found
        if not found:
            self.asked.set()
        return found

    async def listing(self, kind: Kind, *_: Any, **__: Any) -> AsyncIterator[Json]:
        if kind in self.refused:
            self.asked.set()
            raise RefusedError(403, "secrets is forbidden")
        nothing: tuple[Json, ...] = ()
        for found in nothing:
            yield found


def test_an_operator_that_still_waits_ends_at_once_when_it_is_told_to(
    tmp_path: Path,
) -> None:
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "t"}}
    kubeconfig = {"clusters": [cluster], "contexts": [context], "users": [user], "current-context": "x"}
    (tmp_path / "config").write_text(json.dumps(kubeconfig), encoding="utf-8")
    environment = os.environ | {
        "KUBECONFIG": str(tmp_path / "config"),
        # A free one each: nobody asks there, and one that was chosen here could be taken until it starts.
        "MCP_OPERATOR_HEALTH_PORT": "0",
        "MCP_OPERATOR_METRICS_PORT": "0",
    }
    command = [sys.executable, "-m", "mcp_operator"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("the API server does not answer" in line for line in process.stderr)
        process.terminate()
        rest = process.stderr.read()
    assert (process.returncode, "Traceback" in rest) == (0, False), rest


@pytest.mark.parametrize(
    ("lack", "told"),
    [
        (
            {"crd": [False]},
            "the CRD mcpservers.mcp-session.dev is not installed: install it, it is waited for",
        ),
        ({"crd": [UnavailableError("refused")]}, "the API server does not answer: refused"),
        ({"refused": {SECRETS}}, "the secrets cannot be listed: secrets is forbidden"),
    ],
    ids=["no CRD", "no API server", "a right is missing"],
)
async def test_what_is_waited_for_is_told_and_then_forgotten(
    lack: Json, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "CRD_SECONDS", 0.01)
    monkeypatch.setattr(audit, "RETRY_SECONDS", 0.01)
    api = Api()
    for name, value in lack.items():
        setattr(api, name, value)
    operator = main.Operator(cast("Kube", api), Settings())
    assert operator.waiting() == "the cluster is being read"
    preparing = asyncio.create_task(operator.prepare())
    await asyncio.wait_for(api.asked.wait(), 5)
    await asyncio.sleep(0)
    assert operator.waiting() == told
    api.crd, api.refused = [True], set()
    await asyncio.wait_for(preparing, 5)
    assert (operator.waiting(), operator.trouble()) == ("", "")
    await operator.close()


async def nothing() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("ours", [True, False], ids=["a generator of ours", "a watch of kopf's"])
async def test_of_what_fails_unawaited_only_the_closing_of_kopfs_watches_is_no_error(
    ours: bool, caplog: pytest.LogCaptureFixture
) -> None:
    # As it was seen: the closing of a watch lost the race with the end of the loop.
    settings: Any = kopf.OperatorSettings()
    resource: Any = kopf.Resource("", "v1", "pods")
    left: Any = nothing() if ours else infinite_watch(settings=settings, resource=resource, namespace=None)
    error = RuntimeError("generator didn't stop after athrow()")
    context = {"message": "an error occurred during closing", "exception": error, "asyncgen": left}
    main.told(asyncio.get_running_loop(), context)
    assert [record.levelname for record in caplog.records] == (["ERROR"] if ours else [])
    await left.aclose()


def test_the_operator_opens_as_many_files_as_the_system_allows() -> None:
    script = """
import resource
from mcp_operator import __main__ as operator
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
operator.lift_file_limit()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard) != (64, 64)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_operator_whose_limit_of_files_cannot_be_raised_says_so_and_starts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(_what: int, _limits: tuple[int, int]) -> None:
        raise ValueError("not allowed to raise maximum limit")  # as Python words EPERM

    monkeypatch.setattr(resource, "setrlimit", refused)
    entry.lift_file_limit()
    assert "the limit of open files cannot be raised" in caplog.text
