"""How a relay's container ended is told in words, with the cure where there is one."""

from typing import Any

import pytest

from mcp_operator.core import pod, relay, status
from mcp_operator.core.decide import decide
from mcp_operator.core.observation import ContainerFacts, RelayView

CONTEXT = status.Context("image", "url")


def test_the_last_words_of_the_relay_are_told_with_its_exit_code(world: Any) -> None:
    said = '{"event":"start"}\nmcp-relay: the secret in /secrets/token is empty\n'
    waiting = world.waiting("CrashLoopBackOff", last=world.ending(2, "Error", said))
    assert relay.cause(waiting, world.now) == (
        "the relay ended with exit code 2: mcp-relay: the secret in /secrets/token is empty"
    )


def test_a_relay_over_its_memory_limit_is_told_with_the_cure(world: Any) -> None:
    assert "relay.resources.limits.memory" in relay.cause(world.terminated(137, "OOMKilled"), world.now)


def test_a_relay_that_runs_well_has_no_cause(world: Any) -> None:
    assert relay.cause(world.running(), world.now) == ""
    assert relay.cause(ContainerFacts(), world.now) == ""


@pytest.mark.parametrize(("seconds", "known"), [(59, True), (61, False)])
def test_an_end_explains_the_silence_after_it_for_a_minute(world: Any, seconds: int, known: bool) -> None:
    assert bool(relay.cause(world.running(last=world.ending(1, at=seconds)), world.now)) is known


def test_the_end_before_a_restart_is_read_from_the_pod() -> None:
    ended = {"exitCode": 2, "reason": "Error", "message": "bad", "finishedAt": "2026-01-31T11:59:00Z"}
    entry = {"name": "relay", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    found = pod.facts(
        {"status": {"initContainerStatuses": [{**entry, "lastState": {"terminated": ended}}]}}
    ).relay
    assert found.last is not None
    assert (found.last.exit_code, found.last.message) == (2, "bad")
    assert pod.facts({"status": {"initContainerStatuses": [entry]}}).relay.last is None


def test_the_relays_own_failure_stands_in_the_status_and_the_server_is_not_blamed(world: Any) -> None:
    broken = world.waiting("CrashLoopBackOff", last=world.ending(2, "Error", "the token is empty"))
    seen = world.seen(pods=(world.pod(server=world.running(130), relay=broken),), relay=RelayView(failures=9))
    error = status.compute(seen, decide(seen), CONTEXT).error
    assert error is not None
    assert error.message == (
        "the session could not be initialised within 120 s: "
        "the relay ended with exit code 2: the token is empty"
    )
    assert error.phase == "Transport"
