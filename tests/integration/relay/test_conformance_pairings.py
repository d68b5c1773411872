"""The official suite on the pairings of different eras, which `make conformance` does not run."""

import asyncio

import pytest

from suitekit import local, suite

# Scenarios of the newer set for which the fixture with sessions lacks a tool, a prompt or a header.
_WITHOUT_FIXTURE = {
    "http-custom-header-server-validation",
    "input-required-result-basic-elicitation",
    "input-required-result-basic-list-roots",
    "input-required-result-basic-sampling",
    "input-required-result-capability-check",
    "input-required-result-multi-round",
    "input-required-result-multiple-input-requests",
    "input-required-result-non-tool-request",
    "input-required-result-request-state",
    "input-required-result-result-type",
    "input-required-result-tampered-state",
    "server-stateless",
}
_UNTESTABLE = (
    "Not testable",
    "Unknown tool",
    "Unknown prompt",
    "Expected InputRequiredResult",
    "Prerequisite",
)


@pytest.mark.timeout(600)  # the first time the suite is installed
@pytest.mark.parametrize(
    ("revision", "server", "protocol", "excused"),
    [
        ("2025-11-25", local.MODERN, "Modern", set[str]()),
        ("2026-07-28", local.LEGACY, "Auto", _WITHOUT_FIXTURE),
    ],
)
async def test_clients_of_one_era_lose_nothing_at_a_server_of_the_other(
    revision: str, server: str, protocol: str, excused: set[str]
) -> None:
    installed = await asyncio.to_thread(suite.installed)
    scenarios = installed.scenarios(revision)
    with local.running(server, protocol) as relay:
        before = relay.started_servers()
        outcomes, _ = await asyncio.to_thread(installed.run, revision, relay.url)
        assert (len(before), relay.servers()) == (1, before)
    assert outcomes.keys() >= set(scenarios.scored)
    failing = {name for name in scenarios.scored if outcomes[name].failed}
    failing |= {name for name in outcomes if outcomes[name].failed and not name.startswith("tasks-")}
    assert failing == excused
    errors = [error for name in failing for error in outcomes[name].errors]
    assert [error for error in errors if not any(word in error for word in _UNTESTABLE)] == []
