import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_relay_api import status as contract
from mcp_sidecar.core import document, handshake
from mcp_sidecar.core.document import Exit, Facts, Problem, Process
from mcp_sidecar.core.machine import State

WILD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=12,
)
ENDED = Exit(137, "SIGKILL", "Signaled", "m" * 5000, 2.0, "e" * 5000)


def exited(code: int) -> Exit:
    return replace(ENDED, reason="Exited", exit_code=code)


def validated(facts: Facts) -> contract.RelayStatus:
    """The document for some facts, held against the contract."""
    data = document.render(facts, "i", 3, 1, 2)
    raw = json.loads(data)
    status = contract.RelayStatus.model_validate_json(data)
    assert raw.keys() == status.model_dump(by_alias=True).keys()
    for key in ("process", "exit", "error", "session"):
        part = getattr(status, key)
        assert part is None or raw[key].keys() == part.model_dump(by_alias=True).keys()
    return status


def test_an_empty_document_satisfies_the_contract() -> None:
    status = validated(Facts())
    assert (status.instance, status.revision, status.handshakes, status.clients) == ("i", 3, 1, 2)
    assert (status.tool_count, status.tools) == (None, ())


@pytest.mark.parametrize("state", list(State))
def test_a_full_document_satisfies_the_contract_and_is_bounded(state: State) -> None:
    answer = {
        "protocolVersion": "2025-11-25",
        "serverInfo": {"name": "n" * 9999, "icons": ["x" * 100_000], "version": 5},
        "capabilities": {f"c{i}": {"x": "y" * 1000} for i in range(1000)},
    }
    tools = [
        {"name": "t" * 999, "title": "t", "description": "d" * 9999, "inputSchema": {"x": "y" * 999}}
    ] * 2000
    facts = Facts(
        state=state,
        since=1.0,
        process=Process("abc", 17, 1.5),
        exit=ENDED,
        error=Problem("Initialize", "InitializeRefused", "m" * 9999),
        session=document.session(answer, 1.0, adopted=True),
        tools=document.tools(tools),
    )
    status = validated(facts)
    assert status.tool_count == 2000
    assert len(status.tools) == contract.MAX_TOOLS == document.MAX_TOOLS
    assert len(status.tools[0].description or "") == contract.MAX_DESCRIPTION == document.MAX_DESCRIPTION
    assert status.exit is not None
    assert len(status.exit.stderr_tail) == contract.MAX_STDERR_TAIL == document.MAX_STDERR_TAIL
    assert len(document.render(facts, "i", 3, 1, 2)) < 128 * (256 + 256 + 100) + 64_000


@given(WILD, WILD, st.lists(WILD, max_size=5))
def test_whatever_a_server_says_the_document_can_be_read(
    info: Any, capabilities: Any, tools: list[Any]
) -> None:
    answer = {"protocolVersion": "2025-11-25", "serverInfo": info, "capabilities": capabilities}
    facts = Facts(session=document.session(answer, 1.0, adopted=False), tools=document.tools(tools))
    assert validated(facts).tool_count == len(tools)


def test_tools_are_shown_as_they_came_and_counted_also_without_a_name() -> None:
    tools = document.tools(
        [{"name": "a", "description": 5}, "odd", {"title": "no name"}, {"name": "b b", "title": "t"}]
    )
    assert (tools.count, tools.shown) == (4, ({"name": "a"}, {"name": "b b", "title": "t"}))


def test_the_digest_changes_with_any_change_of_the_list() -> None:
    base = document.tools([{"name": "a", "inputSchema": {"x": 1}}]).digest
    assert base.startswith("sha256:")
    assert base == document.tools([{"name": "a", "inputSchema": {"x": 1}}]).digest
    assert base != document.tools([{"name": "a", "inputSchema": {"x": 2}}]).digest


@pytest.mark.parametrize(
    ("ended", "initialised", "phase", "words"),
    [
        (ENDED, True, "Process", "ended by signal SIGKILL (exit code 137)"),
        (exited(0), True, "Process", "exited with code 0"),
        (exited(1), False, "Process", "exited with code 1 before it answered initialize"),
        (
            replace(ENDED, reason="OutOfMemory", message="the process was killed"),
            True,
            "Process",
            "was killed because the container's memory limit was reached",
        ),
        (
            replace(
                ENDED,
                reason="MemoryLimitExceeded",
                message="the process was killed because it used more than its limit of 1Gi",
            ),
            True,
            "Process",
            "was killed because it used more than its limit of 1Gi (spec.session.processMemoryLimit)",
        ),
        (
            replace(ENDED, reason="CommandNotFound", message="no file x"),
            False,
            "ProcessStart",
            "could not be started: no file x",
        ),
        (
            replace(ENDED, reason="StartFailed", message=""),
            False,
            "ProcessStart",
            "could not be started: StartFailed",
        ),
    ],
)
def test_an_end_is_told_in_words_and_with_its_phase(
    ended: Exit, initialised: bool, phase: str, words: str
) -> None:
    problem = document.process_problem(ended, initialised)
    assert (problem.phase, problem.message) == (phase, words)
    assert problem.phase in set(contract.ErrorPhase)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"error": {"code": -1, "message": "no"}}, "InitializeRefused"),
        ({"error": "odd"}, "InitializeRefused"),
        ({"result": None}, "InvalidInitializeResult"),
        ({"result": {"protocolVersion": 5}}, "InvalidInitializeResult"),
        ({"result": {"protocolVersion": "2026-07-28"}}, "UnsupportedProtocolVersion"),
        ({"result": {"protocolVersion": "2024-11-05"}}, None),
        ({"result": {"protocolVersion": "2024-11-05", "instructions": "x" * 900_000}}, None),
        (
            {"result": {"protocolVersion": "2024-11-05", "instructions": "x" * 1_048_576}},
            "InvalidInitializeResult",
        ),
        ({"result": {"protocolVersion": "v" * 5000}}, "UnsupportedProtocolVersion"),
        ({"error": {"code": -1, "message": "m" * 5000}}, "InitializeRefused"),
    ],
)
def test_an_answer_to_initialize_is_usable_or_the_reason_is_named(
    message: dict[str, Any], reason: str | None
) -> None:
    problem = handshake.judge(message)
    assert (problem and problem.reason) == reason
    assert problem is None or len(problem.message) <= document.MAX_MESSAGE


def test_capabilities_that_are_none_are_none() -> None:
    assert handshake.capabilities({"capabilities": []}) == {}
    assert handshake.params()["protocolVersion"] == "2025-11-25"
    assert handshake.params()["capabilities"] == {}
    assert handshake.params(("sampling", "roots"))["capabilities"] == {"sampling": {}, "roots": {}}


def test_a_metric_has_few_labels_for_ends_whatever_is_told() -> None:
    told = ("MemoryLimitExceeded", "CommandNotFound", "made up")
    assert [document.end_label(replace(ENDED, reason=reason)) for reason in told] == [*told[:2], "other"]
