"""Whatever servers say, however much of it: the status has a size and a form that the API server takes."""

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # comes with mcp, without stubs
import pytest

from crdgen import conform, crd
from mcp_operator.core import status
from mcp_operator.core.decide import decide
from mcp_operator.core.observation import Observation, RelayView

MIB = 1024 * 1024
# etcd takes requests of 1.5 MiB by default (--max-request-bytes); managed fields come on top of the status.
LIMIT = 256 * 1024
STRANGE = "a name with blanks, \x00 and \ud800 " * 8
LONG: list[dict[str, Any]] = [
    {"name": f"{STRANGE}{number}", "title": "t\u2028" * 999, "description": "d\n" * 1024}
    for number in range(2000)
]


def written(seen: Observation) -> dict[str, Any]:
    """The status, which is small enough and which the definition admits."""
    made = status.document(status.compute(seen, decide(seen), status.Context("image", "http://x/mcp")))
    schema = crd.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    jsonschema.validate({"spec": {"command": ["x"]}, "status": made}, conform.strict(schema))
    assert len(json.dumps(made, ensure_ascii=False).encode()) < LIMIT
    return made


def test_thousands_of_long_and_strange_tools_make_a_status_that_can_be_written(world: Any) -> None:
    report = world.report(tools=LONG, toolCount=len(LONG))
    made = written(world.seen(relay=RelayView(report)))
    assert made["phase"] == "Connected"
    assert made["toolCount"] == 2000
    assert len(made["tools"]) == 128


@pytest.mark.parametrize(
    ("state", "reason"), [("Refused", "InitializeRefused"), ("Dropped", "StdoutClosed")], ids=str
)
def test_a_mebibyte_of_error_text_makes_a_status_that_can_be_written(
    world: Any, state: str, reason: str
) -> None:
    error = {"phase": "Initialize", "reason": reason, "message": "no licence " * (MIB // 11)}
    report = world.report(state=state, session=None, error=error, toolCount=None, tools=[])
    made = written(world.seen(relay=RelayView(report)))
    assert made["phase"] == "Recreating"
    assert made["recovery"]["consecutiveFailures"] == 1


def test_a_mebibyte_of_last_words_makes_a_status_that_can_be_written(world: Any) -> None:
    told = json.dumps({"version": 1, "exitCode": 3, "reason": "Exited", "stderrTail": "no key\n" * 150_000})
    made = written(world.seen(pods=(world.pod(server=world.terminated(3, "Error", told)),)))
    assert (made["phase"], made["error"]["exitCode"]) == ("Recreating", 3)
    assert made["error"]["stderrTail"].endswith("no key")
