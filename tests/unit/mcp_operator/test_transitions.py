"""Events: one per transition, none for what only repeats itself."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from mcp_operator.adapters.kinds import EVENTS
from mcp_operator.core import status
from mcp_operator.core.api import MCPServerStatus, Phase
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
    assert [(note.reason, note.warning, note.after) for note in told] == [("RelayUnreachable", True, 3)]
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


def test_each_failure_of_a_clients_process_is_told_once(world: Any) -> None:
    seen, _ = step(world.seen())
    ended = {
        "exitCode": 137, "signal": "SIGKILL", "reason": "MemoryLimitExceeded", "time": 1_700_000_000.5,
        "message": "the process was killed because it used more than its memory limit of 96Mi",
    }  # fmt: skip
    seen, told = step(replace(seen, relay=RelayView(world.report(processFailure=ended))))
    assert [(note.reason, note.warning) for note in told] == [("ClientProcessFailed", True)]
    assert (
        "others go on: the process was killed because it used more than its memory limit of 96Mi: raise spec."
        in (told[0].message)
    )
    seen, told = step(replace(seen, relay=RelayView(world.report(processFailure=ended, clients=3))))
    assert told == ()
    later = ended | {"time": 1_700_000_100.123456}
    assert len(step(replace(seen, relay=RelayView(world.report(processFailure=later))))[1]) == 1


def test_a_failure_of_a_clients_process_is_not_told_again_when_its_relay_is_heard_again(world: Any) -> None:
    ended = {"exitCode": 1, "reason": "Exited", "time": 1_700_000_000.123456, "message": "exited with code 1"}
    heard = RelayView(world.report(processFailure=ended))
    seen, told = step(world.seen(relay=heard))
    assert "ClientProcessFailed" in [note.reason for note in told]
    silent, _ = step(replace(seen, relay=RelayView(world.report(), failures=1, message="refused")))
    assert silent.status.phase is Phase.RECONNECTING
    back, told = step(replace(silent, relay=heard))
    assert [note.reason for note in told] == ["Connected"]
    anew, _ = step(replace(back, relay=RelayView(world.report())))
    assert anew.status.session is not None
    assert anew.status.session.last_process_failure is None


def test_an_event_is_about_the_resource_and_bounded(world: Any) -> None:
    note = Note("Created", "x" * 1024, warning=True)
    made = events.build(Owner("time", "default", "u"), note, world.now)
    assert made["regarding"]["uid"] == "u"
    assert made["type"] == "Warning"
    assert made["eventTime"] == "2026-01-31T12:00:00.000000Z"
    assert len(made["note"]) <= 1024


def test_what_is_waited_for_is_told_also_while_a_counted_failure_stands_in_the_status(world: Any) -> None:
    seen, _ = step(world.seen(pods=(world.pod(server=world.terminated(1)),)))
    waiting = replace(seen, pods=(world.pending(epoch=2, scheduled=False),), relay=RelayView())
    on_its_way, _ = step(waiting)
    stuck = replace(on_its_way, pods=(world.pending(epoch=2, scheduled=False, unschedulable="no room"),))
    stuck, told = step(stuck)
    assert [(note.reason, note.message) for note in told] == [("Unschedulable", "no room")]
    assert step(stuck)[1] == ()


def test_a_tool_list_that_cannot_be_read_is_told_once_and_so_is_its_end(world: Any) -> None:
    seen, _ = step(world.seen())
    error = {"phase": "ListTools", "reason": "Timeout", "message": "no list"}
    broken, told = step(replace(seen, relay=RelayView(world.report(error=error, toolCount=None, tools=[]))))
    assert [(note.reason, note.warning) for note in told] == [("ListToolsFailed", True)]
    assert "no list" in told[0].message
    assert step(broken)[1] == ()
    assert [note.reason for note in step(replace(broken, relay=seen.relay))[1]] == ["Connected"]


def test_a_start_that_goes_well_is_told_by_two_events(world: Any) -> None:
    seen = world.seen(pods=(), relay=RelayView(), status=MCPServerStatus())
    told = []
    for change in (
        {},
        {"pods": (world.pending(),)},
        {"pods": (world.pod(ready=False),), "relay": world.connecting()},
        {"pods": (world.pod(ready=False),), "relay": RelayView(world.report())},
        {"pods": (world.pod(),), "relay": RelayView(world.report())},
    ):
        seen, new = step(replace(seen, **change), created="" if change else "mcp-time-1")
        told += [note.reason for note in new]
    assert told == ["Created", "Initializing", "Connected"]


@pytest.mark.parametrize(
    ("then", "told"),
    [
        (((0.5, Phase.CONNECTED, "Connected"),), []),
        (((0.5, Phase.RECREATING, "ProcessExited"),), ["ProcessExited"]),
        (((1, Phase.RECONNECTING, ""), (6, Phase.RECONNECTING, "")), ["TransportDropped"]),
        (
            ((6, Phase.RECONNECTING, ""), (7, Phase.CONNECTED, "Connected")),
            ["TransportDropped", "Connected"],
        ),
        (((9, Phase.PENDING, ""), (12, Phase.RECONNECTING, "")), []),
    ],
    ids=["a blip", "a process that ended", "lasting", "lasting and over", "overtaken"],
)
async def test_a_connection_that_breaks_is_told_only_if_that_lasts(
    setup: Any, then: tuple[tuple[float, Phase, str], ...], told: list[str]
) -> None:
    herald, owner = events.Herald(setup.kube), Owner("time", "default", "u")
    for seconds, phase, reason in ((0, Phase.RECONNECTING, "TransportDropped"), *then):
        now = setup.now + timedelta(seconds=seconds)
        await herald.look(owner, phase, now)
        lasting = 3.0 if reason == "TransportDropped" else 0.0
        await herald.tell(owner, (Note(reason, reason, warning=True, after=lasting),) if reason else (), now)
    assert [event["reason"] for event in setup.kube.objects[EVENTS].values()] == told
