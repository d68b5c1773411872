"""Public servers that nobody here wrote, from the examples as they stand, under the default sandbox.

Their namespace has a quota for everything, a LimitRange, and admits what passes Pod Security `restricted`.
"""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from clusterkit import disks
from clusterkit import kube as k
from clusterkit.clients import call_from_here, call_from_pod
from clusterkit.servers import Servers, status
from clusterkit.serving import serving

EXAMPLES = Path(__file__).parents[2] / "examples"
WITHIN = 150
# What an example needs that this cluster cannot pull.
IMAGES = {"docker.io/library/redis:8": "localhost/mcpserver-operator/redis:dev"}


@dataclass(frozen=True)
class Case:
    """One example and one call of one of its tools."""

    path: str
    tool: str
    arguments: k.Json = field(default_factory=dict)
    expected: str = ""
    env: tuple[tuple[str, str], ...] = ()
    """For the server, where what it would call on the internet stands in the cluster."""
    args: tuple[str, ...] = ()
    """The same."""
    inside: bool = False
    """Whether it calls something in the cluster, which the default network policy forbids."""

    @property
    def name(self) -> str:
        """Of the MCPServer."""
        return Path(self.path).stem


EXAMPLE_CASES = (
    Case("time.yaml", "get_current_time", {"timezone": "Europe/Berlin"}, "Europe/Berlin"),
    Case("everything.yaml", "echo", {"message": "hello"}, "hello"),
)
PUBLIC_CASES = (
    Case(
        "servers/fetch.yaml",
        "fetch",
        {"url": "http://web/page"},
        "It has a paragraph of text",
        args=("--allow-private-ips",),
        inside=True,
    ),
    Case("servers/git.yaml", "git_status", {"repo_path": "/home/mcp/work"}, "No commits yet"),
    Case("servers/duckdb.yaml", "query", {"query": "select 6 * 7 as answer"}, "42"),
    Case("servers/sqlite.yaml", "read_query", {"query": "select 6 * 7 as answer"}, "42"),
    Case("servers/redis.yaml", "set", {"key": "greeting", "value": "hello"}, "uccess"),
    Case(
        "servers/filesystem.yaml",
        "write_file",
        {"path": "/home/mcp/note.txt", "content": "hello"},
        "Successfully wrote",
    ),
    Case(
        "servers/memory.yaml",
        "read_graph",
        {},
        "entities",
    ),
    Case(
        "servers/sequential-thinking.yaml",
        "sequentialthinking",
        {"thought": "first", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": False},
        "thoughtNumber",
    ),
    Case(
        "servers/chart.yaml",
        "generate_bar_chart",
        {"data": [{"category": "calls", "value": 7}]},
        "http://web/chart.png",
        env=(("VIS_REQUEST_SERVER", "http://web/chart"),),
        inside=True,
    ),
    Case(
        "servers/playwright.yaml",
        "browser_navigate",
        {"url": "http://web/page"},
        "Page Title: Page",
        inside=True,
    ),
)


def objects(path: str) -> list[k.Json]:
    """The objects of an example; images that cannot be pulled here are replaced."""
    found: list[k.Json] = list(yaml.safe_load_all((EXAMPLES / path).read_text()))
    for item in found:
        for container in item.get("spec", {}).get("containers", ()):
            container["image"] = IMAGES.get(container["image"], container["image"])
    return found


def _adapt(spec: k.Json, case: Case) -> None:
    if case.env:
        spec["env"] = [{"name": name, "value": value} for name, value in case.env]
    if case.args:
        spec["args"] = list(case.args)
    if case.inside:
        spec["network"] = {"egress": "All"}


@pytest.fixture(scope="module")
def namespace(namespace_with_quota: str) -> str:
    """The strictest namespace."""
    return namespace_with_quota


async def counted(servers: Servers) -> None:
    """The quota counts the server's pod."""
    quota = await servers.kube.get(k.QUOTAS, servers.namespace, "all")
    assert int(status(quota, "used", "pods")) > 0
    assert int(status(quota, "used", "count/mcpservers.mcp-session.dev")) > 0
    assert set(status(quota, "used")) == set(status(quota, "hard"))


async def check(servers: Servers, case: Case) -> None:
    """Apply the example, wait, look at its tools, call one from a pod and from here."""
    for item in objects(case.path):
        if item["kind"] == "MCPServer":
            _adapt(item["spec"], case)
        kind = k.Kind(item["apiVersion"], f"{item['kind'].lower()}s")
        await servers.kube.apply(kind, servers.namespace, item)
    server = servers.handle(case.name)
    item = await server.ready(within=WITHIN)
    names = [entry["name"] for entry in status(item, "tools")]
    assert case.tool in names
    assert status(item, "recovery", "restarts") == 0
    await counted(servers)
    for call in (call_from_pod, call_from_here):
        answer = await call(server, case.tool, **case.arguments)
        assert answer["isError"] is False, answer
        assert sorted(answer["tools"]) == sorted(names)
        assert case.expected in json.dumps(answer["text"])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", EXAMPLE_CASES, ids=lambda case: case.name)
async def test_an_example_comes_up_and_its_tool_answers_from_inside_and_outside(
    servers: Servers, case: Case
) -> None:
    await check(servers, case)


async def test_the_example_that_fails_is_told_within_the_quota_too(servers: Servers) -> None:
    [broken] = objects("broken.yaml")
    await servers.kube.apply(k.MCPSERVERS, servers.namespace, broken)
    item = await servers.handle("broken").failed(within=WITHIN)
    assert status(item, "error", "stderrTail") == "DATABASE_URL is not set"
    assert status(item, "error", "reason") == "ProcessExited"


@pytest.fixture
async def web(servers: Servers) -> AsyncIterator[None]:
    """A web server in the namespace: a page, and what draws charts."""
    command = ["python3", "/servers/web.py", "--port", "8080"]
    async with serving(servers.kube, servers.namespace, "web", command, listens=8080, port=80):
        yield


@pytest.fixture
def disk(namespace: str) -> Iterator[None]:
    """A volume for the claim of the SQLite example."""
    with disks.disk(namespace, "sqlite"):
        yield


@pytest.mark.public
@pytest.mark.usefixtures("web", "disk")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("case", PUBLIC_CASES, ids=lambda case: case.name)
async def test_a_public_server_runs_unchanged_in_the_default_sandbox(servers: Servers, case: Case) -> None:
    await check(servers, case)
