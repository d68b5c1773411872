"""The status document: what stands in it in each situation, and that nothing is written twice."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mcp_operator.core import status
from mcp_operator.core.api import ErrorPhase, MCPServerStatus
from mcp_operator.core.api.status import MAX_TOOL_NAME, ServerError
from mcp_operator.core.decide import decide
from mcp_operator.core.observation import MissingReference, Observation, RelayView

CONTEXT = status.Context(image="runtime:1", url="http://mcp-time.default.svc/mcp")
T = "2026-01-31T12:00:00Z"
NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
Json = dict[str, Any]


def written(seen: Observation, created: tuple[str, str] | None = None) -> Json:
    return status.document(status.compute(seen, decide(seen), CONTEXT, created))


def condition(kind: str, value: str, reason: str, message: str) -> Json:
    return {
        "type": kind, "status": value, "reason": reason, "message": message,
        "lastTransitionTime": T, "observedGeneration": 1,
    }  # fmt: skip


def short(document: Json) -> dict[str, str]:
    return {item["type"]: f"{item['status']}/{item['reason']}" for item in document["conditions"]}


def test_a_connected_server_shows_its_session_its_address_and_its_tools(world: Any) -> None:
    assert written(world.seen()) == {
        "observedGeneration": 1,
        "phase": "Connected",
        "conditions": [
            condition("Accepted", "True", "Valid", "the spec is accepted"),
            condition("Available", "True", "PodRunning", "the server process and the relay run"),
            condition("Verified", "True", "Initialized", "the session is initialised"),
            condition("Ready", "True", "Connected", "clients are served"),
        ],
        "image": "runtime:1",
        "address": {"url": "http://mcp-time.default.svc/mcp"},
        "recovery": {
            "action": "None", "attempt": 0, "maxRetries": 3, "restarts": 0, "reconnects": 0,
            "consecutiveFailures": 0, "configHash": "spec.refs",
        },
        "session": {
            "podName": "mcp-time-1", "podUID": "pod-1", "epoch": 1, "since": "2026-01-31T11:59:00Z",
            "clients": 2,
            "protocolVersion": "2025-11-25", "serverInfo": {"name": "time", "version": "1.0"},
            "capabilities": ["tools", "tools.listChanged"],
        },
        "toolCount": 1,
        "toolsDigest": "sha256:1",
        "tools": [{"name": "now", "description": "Tells the time"}],
    }  # fmt: skip


def test_a_server_that_exits_shows_why_when_and_what_comes_next(world: Any) -> None:
    told = (
        '{"version":1,"exitCode":3,"signal":null,"reason":"Exited","message":"","stderrTail":"no API key\\n"}'
    )
    document = written(world.seen(pods=(world.pod(server=world.terminated(3, "Error", told)),)))
    message = "retry 1 of 3 follows at 12:00:02 UTC: the server process exited with 3: no API key"
    assert document == {
        "observedGeneration": 1,
        "phase": "Recreating",
        "conditions": [
            condition("Accepted", "True", "Valid", "the spec is accepted"),
            condition("Available", "False", "ProcessExited", "the server process exited with 3: no API key"),
            condition("Verified", "False", "ProcessExited", "the server process exited with 3: no API key"),
            condition("Ready", "False", "BackingOff", message),
            condition("Reconciling", "True", "BackingOff", message),
        ],
        "image": "runtime:1",
        "error": {
            "phase": "Process", "reason": "ProcessExited",
            "message": "the server process exited with 3: no API key",
            "exitCode": 3, "time": "2026-01-31T11:59:59Z", "stderrTail": "no API key",
        },
        "recovery": {
            "action": "Recreate", "attempt": 1, "maxRetries": 3, "nextAttemptTime": "2026-01-31T12:00:02Z",
            "restarts": 0, "reconnects": 0, "consecutiveFailures": 1,
            "configHash": "spec.refs", "failedEpoch": 1,
        },
        "session": {"podName": "mcp-time-1", "podUID": "pod-1", "epoch": 1},
    }  # fmt: skip


def test_retries_used_up_are_stalled_and_no_longer_reconciling(world: Any) -> None:
    before = world.status(consecutive_failures=3, failed_epoch=3)
    seen = world.seen(pods=(world.pod(epoch=4, server=world.terminated(1)),), status=before)
    document = written(seen)
    assert document["phase"] == "Error"
    assert short(document) == {
        "Accepted": "True/Valid",
        "Available": "False/ProcessExited",
        "Verified": "False/ProcessExited",
        "Ready": "False/BackoffExhausted",
        "Stalled": "True/BackoffExhausted",
    }


def test_a_slow_attempt_under_way_is_still_stalled(world: Any) -> None:
    before = world.status(consecutive_failures=4, failed_epoch=4, epoch=5)
    document = written(world.seen(pods=(world.pod(epoch=5),), relay=world.connecting(), status=before))
    assert document["phase"] == "Connecting"
    assert "Stalled" in short(document)


def test_a_missing_secret_is_named_with_the_field_and_the_cure(world: Any) -> None:
    gap = (MissingReference("Secret", "keys", "spec.env[0].valueFrom.secretKeyRef", "a"),)
    waiting = world.pending(world.waiting("CreateContainerConfigError", "couldn't find key a"))
    document = written(world.seen(pods=(waiting,), missing=gap, relay=RelayView()))
    message = (
        'spec.env[0].valueFrom.secretKeyRef: Secret "keys" has no key "a": add it, in namespace "default"'
    )
    assert document["phase"] == "Pending"
    assert document["error"]["message"] == message
    assert short(document)["Accepted"] == "False/SecretKeyNotFound"


def test_a_running_server_stays_ready_when_a_reference_vanishes_and_the_status_tells_both(world: Any) -> None:
    gap = (MissingReference("Secret", "keys", "spec.env[0].valueFrom.secretKeyRef"),)
    assert short(written(world.seen(missing=gap, config_hash="spec.gone"))) == {
        "Accepted": "False/SecretNotFound",
        "Available": "True/PodRunning",
        "Verified": "True/Initialized",
        "Ready": "True/Connected",
    }


RELAYS = [
    lambda w: RelayView(w.report()),
    lambda w: RelayView(w.report(), failures=1),
    lambda w: RelayView(w.report(state="Dropped")),
    lambda w: RelayView(w.report(toolCount=None)),
    lambda w: w.connecting(),
]


@pytest.mark.parametrize("relay", RELAYS)
@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("reached", [True, False])
def test_the_address_is_told_only_with_ready(world: Any, relay: Any, up: bool, reached: bool) -> None:
    pod = world.pod(ready=up)
    document = written(world.seen(relay=relay(world), pods=(pod,), reachable=reached))
    assert ("address" in document) is short(document)["Ready"].startswith("True")


@pytest.mark.parametrize("relay", RELAYS)
@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("accepted", [True, False])
def test_ready_is_true_only_with_available_and_verified(
    world: Any, relay: Any, up: bool, accepted: bool
) -> None:
    gap = () if accepted else (MissingReference("Secret", "keys", "spec.env[0].valueFrom.secretKeyRef"),)
    pod = world.pod(ready=up, server=world.running() if up else world.terminated(1))
    found = short(written(world.seen(relay=relay(world), pods=(pod,), missing=gap)))
    both = found["Available"].startswith("True") and found["Verified"].startswith("True")
    assert both or found["Ready"].startswith("False")
    assert found["Accepted"].startswith("True") is accepted


def test_the_first_pod_is_shown_before_the_api_server_tells_about_it(world: Any) -> None:
    seen = world.seen(pods=(), relay=RelayView(), status=MCPServerStatus())
    document = written(seen, created=("mcp-time-1", "uid"))
    assert document["phase"] == "Pending"
    assert document["session"] == {"podName": "mcp-time-1", "podUID": "uid", "epoch": 1}


@pytest.mark.parametrize(
    "change",
    [
        {"relay": "unreachable"},
        {"relay": "dropped"},
        {"pods": "deleting"},
        {"pods": "terminated"},
        {"spec": "suspended"},
        {"deleting": True},
    ],
    ids=str,
)
def test_tools_and_address_are_gone_when_the_session_is(world: Any, change: Json) -> None:
    made = {
        "unreachable": RelayView(world.report(), failures=1, message="refused"),
        "dropped": RelayView(world.report(state="Dropped")),
        "deleting": (world.pod(deleting=True),),
        "terminated": (world.pod(server=world.terminated(137)),),
        "suspended": world.spec(suspend=True),
        True: True,
    }
    seen = world.seen(**{field: made[value] for field, value in change.items()})
    document = written(seen)
    assert not {"address", "tools", "toolCount", "toolsDigest"} & set(document)
    assert short(document)["Ready"].startswith("False/")
    assert "since" not in document.get("session", {})


def test_a_wait_that_is_over_leaves_no_error_behind(world: Any) -> None:
    pulling = world.seen(pods=(world.pending(world.waiting("ErrImagePull", "not found")),), relay=RelayView())
    before = MCPServerStatus.parse(written(pulling))
    assert before.error is not None
    assert "error" not in written(world.seen(status=before))


def test_a_failure_stays_visible_until_the_session_was_stable(world: Any) -> None:
    failed = world.seen(pods=(world.pod(server=world.terminated(1)),))
    before = MCPServerStatus.parse(written(failed))
    again = world.seen(pods=(world.pod(epoch=2, name="mcp-time-2"),), status=before)
    assert written(again)["error"]["exitCode"] == 1


def test_a_connection_that_was_restored_leaves_no_error_behind(world: Any) -> None:
    broken = world.seen(relay=RelayView(world.report(), failures=1))
    status_then = MCPServerStatus.parse(written(broken))
    assert status_then.error is not None
    assert "error" not in written(world.seen(status=status_then))


def test_transition_times_move_only_when_the_status_of_a_condition_does(world: Any) -> None:
    before = MCPServerStatus.parse(written(world.seen()))
    later = replace(world.seen(status=before), now=world.later(90))
    assert written(later) == written(world.seen())
    broken = replace(later, relay=RelayView(world.report(), failures=1))
    times = {item["type"]: item["lastTransitionTime"] for item in written(broken)["conditions"]}
    assert times["Accepted"] == T
    assert times["Ready"] == "2026-01-31T12:01:30Z"


def test_a_pull_error_and_its_back_off_are_one_and_the_same_status(world: Any) -> None:
    first = world.waiting("ErrImagePull", 'failed to pull "x": not found')
    then = world.waiting("ImagePullBackOff", 'Back-off pulling image "x"')
    newer = world.waiting(
        "ImagePullBackOff", 'Back-off pulling image "x": ErrImagePull: failed to pull "x": not found'
    )
    before = written(world.seen(pods=(world.pending(first),), relay=RelayView()))
    for state in (then, newer, first):
        seen = world.seen(
            pods=(world.pending(state),), relay=RelayView(), status=MCPServerStatus.parse(before)
        )
        assert status.patch(before, written(replace(seen, now=world.later(20)))) == {}


def test_a_restored_connection_counts_as_reconnect(world: Any) -> None:
    broken = MCPServerStatus.parse(written(world.seen(relay=RelayView(world.report(), failures=1))))
    assert broken.phase == "Reconnecting"
    assert written(world.seen(status=broken))["recovery"]["reconnects"] == 1


def test_what_the_server_says_about_itself_is_bounded_and_clean(world: Any) -> None:
    tools = [{"name": "n" * 400, "title": "t\x00" * 300, "description": "line\nline " * 100}] * 200
    told = world.report(tools=tools, toolCount=200)
    tool = written(world.seen(relay=RelayView(told)))["tools"][0]
    assert len(written(world.seen(relay=RelayView(told)))["tools"]) == 128
    assert len(tool["name"]) == MAX_TOOL_NAME
    assert len(tool["title"]) == 256
    assert "\x00" not in tool["title"]
    assert len(tool["description"]) == 256
    assert "\n" not in tool["description"]


def test_capabilities_are_sorted_paths_without_what_is_declared_false() -> None:
    declared = {
        "tools": {},
        "resources": {"subscribe": True, "listChanged": False},
        "logging": None,
        "x": False,
    }
    assert status.capability_paths(declared) == ("resources", "resources.subscribe", "tools")


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ({}, {}, {}),
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {}, {"a": None}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
        ({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}),
    ],
)
def test_a_patch_holds_what_differs_and_nothing_else(old: Json, new: Json, change: Json) -> None:
    assert status.patch(old, new) == change


MINOR: list[tuple[Json, Json]] = [
    ({"clients": 9}, {"session": {"clients": 9}}),
    ({"toolCount": 2, "toolsDigest": "sha256:2"}, {"toolCount": 2, "toolsDigest": "sha256:2"}),
    ({"tools": [{"name": "new"}]}, {"tools": [{"name": "new"}]}),
]


@pytest.mark.parametrize(("report", "expected"), MINOR)
def test_clients_and_tools_alone_are_written_at_most_every_ten_seconds(
    world: Any, report: Json, expected: Json
) -> None:
    before = written(world.seen())
    change = status.patch(before, written(world.seen(relay=RelayView(world.report(**report)))))
    assert change == expected
    assert status.minor(change)
    now = datetime(2026, 1, 31, 12, 0, 3, tzinfo=UTC)
    assert status.minor_due(datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC), now) == datetime(
        2026, 1, 31, 12, 0, 10, tzinfo=UTC
    )
    assert status.minor_due(datetime(2026, 1, 31, 11, 59, 53, tzinfo=UTC), now) is None


def test_what_else_changes_is_written_at_once(world: Any) -> None:
    gone = written(world.seen(relay=RelayView(world.report(state="Dropped"))))
    assert not status.minor(status.patch(written(world.seen()), gone))
    assert status.minor({"session": {"clients": 1, "processes": 1, "lastProcessFailure": {}}})
    assert not status.minor({"session": {"clients": 1, "since": "2026-01-31T12:00:00Z"}})
    assert not status.minor({"session": {"clients": 1}, "phase": "Connected"})


def test_a_tool_list_that_cannot_be_read_is_told_while_clients_are_served(world: Any) -> None:
    error = {"phase": "ListTools", "reason": "Timeout", "message": "no answer within 30 seconds"}
    report = world.report(error=error, toolCount=None, toolsDigest=None, tools=[])
    document = written(world.seen(relay=RelayView(report)))
    assert (document["phase"], document["address"]["url"]) == ("Connected", CONTEXT.url)
    assert short(document) == {
        "Accepted": "True/Valid",
        "Available": "True/PodRunning",
        "Verified": "True/ListToolsFailed",
        "Ready": "True/Connected",
    }
    assert document["error"]["message"] == "no answer within 30 seconds"
    assert "toolCount" not in document
    again = world.seen(status=MCPServerStatus.parse(document))
    assert "error" not in written(again)


def test_overrides_that_do_not_fit_are_told_while_clients_are_served(world: Any) -> None:
    error = {"phase": "ListTools", "reason": "ToolOverridesUnmatched", "message": "spec.tools.overrides: 'x'"}
    document = written(world.seen(relay=RelayView(world.report(error=error))))
    assert short(document)["Verified"] == "True/ToolOverridesUnmatched"
    assert short(document)["Ready"] == "True/Connected"
    assert document["error"]["message"] == "spec.tools.overrides: 'x'"


COUNTED = ServerError(
    phase=ErrorPhase.PROCESS, reason="ProcessExited", message="it exited", time=NOW - timedelta(seconds=9)
)
GAP = (MissingReference("Secret", "keys", "spec.env[0].valueFrom.secretKeyRef"),)
PASSING: list[Any] = [
    lambda w: {"pods": (w.pending(scheduled=False, unschedulable="no node"),)},
    lambda w: {"pods": (w.pending(w.waiting("ErrImagePull", "not found")),)},
    lambda w: {"pods": (w.pending(w.waiting("CreateContainerConfigError", "no")),), "missing": GAP},
    lambda w: {"relay": RelayView(w.report(), failures=1, message="refused")},
    lambda w: {"relay": RelayView(w.report(state="Dropped", session=None))},
    lambda w: {"pods": (w.pod(relay=w.terminated(1)),)},
    lambda w: {
        "relay": RelayView(w.report(error={"phase": "ListTools", "reason": "x", "message": "x"})),
    },
]


@pytest.mark.parametrize("change", PASSING)
def test_what_is_waited_for_never_hides_a_failure_that_was_counted(world: Any, change: Any) -> None:
    before = world.status(consecutive_failures=1, failed_epoch=0, error=COUNTED)
    seen = world.seen(status=before, **change(world))
    document = written(seen)
    assert document["error"]["reason"] == "ProcessExited"
    assert document["recovery"]["consecutiveFailures"] == 1
    healthy = written(world.seen(status=MCPServerStatus.parse(document)))
    assert healthy["error"]["reason"] == "ProcessExited"


@pytest.mark.parametrize("change", PASSING)
def test_what_is_waited_for_is_shown_while_no_failure_was_counted_and_goes_with_its_end(
    world: Any, change: Any
) -> None:
    document = written(world.seen(**change(world)))
    assert document["error"]["reason"] != "ProcessExited"
    assert "error" not in written(world.seen(status=MCPServerStatus.parse(document)))


def test_a_pod_that_never_started_its_server_is_no_restart(world: Any) -> None:
    waiting = world.pending(world.waiting("CreateContainerConfigError", "no"), created_at=world.ago(60))
    outdated = {"config_hash": "spec.other"}
    assert written(world.seen(pods=(waiting,), **outdated))["recovery"]["restarts"] == 0
    assert written(world.seen(**outdated))["recovery"]["restarts"] == 1


def test_a_replacement_that_an_ended_operator_could_not_write_down_is_counted_once(world: Any) -> None:
    second = world.pod(name="mcp-time-2", uid="uid-2", epoch=2)
    document = written(world.seen(pods=(second,)))
    assert (document["session"]["epoch"], document["recovery"]["restarts"]) == (2, 1)
    again = written(world.seen(pods=(second,), status=MCPServerStatus.parse(document)))
    assert again["recovery"]["restarts"] == 1


def test_the_first_pod_is_no_restart_whoever_wrote_it_down(world: Any) -> None:
    document = written(world.seen(status=MCPServerStatus()))
    assert (document["session"]["epoch"], document["recovery"]["restarts"]) == (1, 0)


def test_a_pod_that_serves_until_it_may_be_replaced_is_ready_and_reconciling(world: Any) -> None:
    young = world.pod(created_at=world.ago(1), config={"the spec": "1", 'Secret "keys"': "1"})
    seen = world.seen(pods=(young,), config_hash="spec.other", config={"the spec": "1", 'Secret "keys"': "2"})
    document = written(seen)
    assert short(document)["Ready"] == "True/Connected"
    assert short(document)["Reconciling"] == "True/ConfigurationChanged"
    assert document["conditions"][-1]["message"] == 'Secret "keys" changed'


def test_a_pod_that_serves_on_under_an_older_spec_is_not_ready_for_the_new_one(world: Any) -> None:
    young = world.pod(created_at=world.ago(1))
    document = written(world.seen(pods=(young,), generation=2, config_hash="other.refs"))
    assert short(document)["Ready"] == "True/Connected"
    assert document["observedGeneration"] == 1
    assert {condition["observedGeneration"] for condition in document["conditions"]} == {1}
    assert written(world.seen(generation=2))["observedGeneration"] == 2


def test_a_pod_that_is_being_replaced_is_neither_ready_nor_settled(world: Any) -> None:
    document = written(world.seen(config_hash="spec.other"))
    assert short(document)["Ready"].startswith("False")
    assert short(document)["Reconciling"] == "True/ConfigurationChanged"
    assert "address" not in document
