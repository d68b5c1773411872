"""Public servers that nobody here wrote, from the examples as they stand, in the default image."""

import json
from pathlib import Path

import pytest
import yaml

from clusterkit import kube as k
from clusterkit.clients import call_from_here, call_from_pod
from clusterkit.servers import Servers, status

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> k.Json:
    loaded: k.Json = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    return loaded


@pytest.mark.parametrize(
    ("name", "tool", "arguments", "expected"),
    [
        ("time", "get_current_time", {"timezone": "Europe/Berlin"}, "Europe/Berlin"),
        ("everything", "echo", {"message": "hello"}, "hello"),
    ],
)
async def test_an_example_comes_up_and_its_tool_answers_from_inside_and_outside(
    servers: Servers, name: str, tool: str, arguments: k.Json, expected: str
) -> None:
    server = servers.handle(name)
    await servers.kube.apply(k.MCPSERVERS, servers.namespace, example(name))
    item = await server.ready(within=150)
    assert tool in [entry["name"] for entry in status(item, "tools")]
    assert status(item, "recovery", "restarts") == 0
    for call in (call_from_pod, call_from_here):
        answer = await call(server, tool, **arguments)
        assert answer["isError"] is False
        assert expected in json.dumps(answer["text"])
