"""Events: one per transition, none for what only repeats itself."""

from dataclasses import replace
from typing import Any

from mcp_operator.core import status
from mcp_operator.core.api import MCPServerStatus
from mcp_operator.core.decide import decide
from mcp_operator.core.observation import Observation, RelayView
from mcp_operator.core.transitions import Note, notes
from mcp_operator.handlers import events
from mcp_operator.manifests.identity import Owner

CONTEXT = status.Context("image", "url")


def step(seen: Observation, created: str = "") -> tuple[Observation, tuple[Note, ...]]:
    plan = decide(seen)
    after = MCPServerStatus.parse(status.document(status.compute(seen, plan, CONTEXT)))
    return replace(seen, status=after), notes(seen.status, after, plan, created)


def test_each_transition_is_told_once(world: Any) -> None:
    seen, first = step(world.seen(status=MCPServerStatus()))
    assert [(note.reason, note.warning) for note in first] == [("Connected", False)]
    assert "1 tools" in first[0].message
    assert step(seen)[1] == ()
    broken = replace(seen, relay=RelayView(world.report(), failures=1, message="refused"))
    broken, told = step(broken)
    assert [(note.reason, note.warning) for note in told] == [("RelayUnreachable", True)]
    assert step(replace(broken, relay=RelayView(world.report(), failures=2, message="refused")))[1] == ()
    assert [note.reason for note in step(replace(broken, relay=RelayView(world.report())))[1]] == [
        "Connected"
    ]


def test_every_failure_is_told_although_the_phase_stays_the_same(world: Any) -> None:
    seen, told = step(world.seen(pods=(world.pod(server=world.terminated(1)),)))
    assert [note.reason for note in told] == ["ProcessExited"]
    assert "retry 1 of 3" in told[0].message
    assert step(seen)[1] == ()
    again = replace(seen, pods=(world.pod(epoch=2, server=world.terminated(1)),))
    assert [note.message.split(" UTC")[0] for note in step(again)[1]] == ["retry 2 of 3 follows at 12:00:04"]


def test_a_new_pod_is_told_by_name(world: Any) -> None:
    _, told = step(world.seen(pods=(), status=MCPServerStatus()), created="mcp-time-1")
    assert told == (Note("Created", "created pod mcp-time-1: the pod is created", warning=False),)


def test_tools_and_clients_that_change_are_no_transition(world: Any) -> None:
    seen, _ = step(world.seen())
    assert step(replace(seen, relay=RelayView(world.report(clients=9, toolCount=2))))[1] == ()


def test_an_event_is_about_the_resource_and_bounded(world: Any) -> None:
    note = Note("Created", "x" * 1024, warning=True)
    made = events.build(Owner("time", "default", "u"), note, world.now)
    assert made["regarding"]["uid"] == "u"
    assert made["type"] == "Warning"
    assert made["eventTime"] == "2026-01-31T12:00:00.000000Z"
    assert len(made["note"]) <= 1024
