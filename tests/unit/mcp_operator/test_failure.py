"""Why something failed, read from what nodes, launcher and relay report."""

import json
from typing import Any

import pytest

from mcp_operator.core import failure, status, text
from mcp_operator.core.api import ErrorPhase, Reason
from mcp_operator.core.decide import decide
from mcp_operator.core.observation import RelayView

PROCESS, START = ErrorPhase.PROCESS, ErrorPhase.PROCESS_START


def told(code: int, reason: str, signal: str | None = None, **more: Any) -> str:
    return json.dumps({"version": 1, "exitCode": code, "signal": signal, "reason": reason, **more})


@pytest.mark.parametrize(
    ("code", "reason", "message", "expected"),
    [
        (1, "Error", told(1, "Exited"), (PROCESS, Reason.PROCESS_EXITED, 1, None)),
        (0, "Completed", told(0, "Exited"), (PROCESS, Reason.PROCESS_EXITED, 0, None)),
        (137, "Error", told(137, "Signaled", "SIGKILL"), (PROCESS, Reason.PROCESS_SIGNALED, 137, "SIGKILL")),
        (137, "Error", told(137, "OutOfMemory", "SIGKILL"), (PROCESS, Reason.OOM_KILLED, 137, "SIGKILL")),
        (137, "OOMKilled", "", (PROCESS, Reason.OOM_KILLED, 137, "SIGKILL")),
        (127, "Error", told(127, "CommandNotFound"), (START, Reason.COMMAND_NOT_FOUND, 127, None)),
        (126, "Error", told(126, "PermissionDenied"), (START, Reason.PERMISSION_DENIED, 126, None)),
        (1, "Error", told(1, "StartFailed"), (START, Reason.START_FAILED, 1, None)),
        (143, "Error", "", (PROCESS, Reason.PROCESS_SIGNALED, 143, "SIGTERM")),
        (2, "Error", "no JSON", (PROCESS, Reason.PROCESS_EXITED, 2, None)),
        (2, "Error", "[1]", (PROCESS, Reason.PROCESS_EXITED, 2, None)),
        (200, "Error", "", (PROCESS, Reason.PROCESS_EXITED, 200, None)),
        (128, "StartError", "exec", (ErrorPhase.CONTAINER_START, Reason.CONTAINER_START_FAILED, None, None)),
    ],
)
def test_the_end_of_the_servers_container(
    world: Any, code: int, reason: str, message: str, expected: Any
) -> None:
    found = failure.from_container(world.terminated(code, reason, message), world.now)
    assert (found.phase, found.reason, found.exit_code, found.signal) == expected
    assert found.time == world.ago(1)


HOSTILE: list[dict[str, Any]] = [
    {"exitCode": 10**30},
    {"exitCode": -5, "signal": "SIG" + "X" * 40},
    {"exitCode": True, "signal": ["a"] * 50, "reason": {"a": 1}},
    {"exitCode": "1", "signal": "SIG\x00\ud800KILL", "time": 1e300, "message": 7},
    {"exitCode": 1e300, "time": "never", "stderrTail": [1] * 900},
]


@pytest.mark.parametrize("message", [*(json.dumps(item) for item in HOSTILE), "[" * 4096, '{"a":' * 800])
def test_a_hostile_termination_message_makes_a_status_all_the_same(world: Any, message: str) -> None:
    seen = world.seen(pods=(world.pod(server=world.terminated(7, "Error", message)),))
    found = status.compute(seen, decide(seen), status.Context("image", "url")).error
    assert found is not None
    assert (found.phase, found.exit_code, found.time) == (PROCESS, 7, world.ago(1))
    assert len(found.signal or "") <= 32


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("Evicted", (PROCESS, Reason.EVICTED)),
        ("Preempting", (PROCESS, Reason.EVICTED)),
        ("NodeLost", (PROCESS, Reason.NODE_LOST)),
        ("Terminated", (PROCESS, Reason.NODE_LOST)),
        ("OutOfmemory", (ErrorPhase.SCHEDULING, Reason.UNSCHEDULABLE)),
        ("NodeAffinity", (ErrorPhase.SCHEDULING, Reason.UNSCHEDULABLE)),
        ("UnexpectedAdmissionError", (ErrorPhase.ADMISSION, Reason.ADMISSION_REFUSED)),
        ("", (PROCESS, Reason.PROCESS_EXITED)),
    ],
)
def test_the_end_of_a_pod_as_a_whole(world: Any, reason: str, expected: Any) -> None:
    pod = world.pod(phase="Failed", reason=reason, message="the node was low on disk")
    found = failure.from_pod(pod, world.now)
    assert (found.phase, found.reason) == expected
    assert "low on disk" in found.message


def test_the_tail_of_stderr_comes_along_clean_and_bounded(world: Any) -> None:
    message = told(1, "Exited", stderrTail="first\n" + "x" * 5000 + "\x1b[31mlast\x00\n")
    found = failure.from_container(world.terminated(1, "Error", message), world.now)
    assert found.stderr_tail is not None
    assert len(found.stderr_tail) <= 2048
    assert found.stderr_tail.endswith("\ufffd[31mlast\ufffd")


def test_what_the_launcher_told_the_relay_fills_in_when_it_was_killed_itself(world: Any) -> None:
    exit_ = {
        "exitCode": 3, "reason": "Exited", "time": world.ago(2).timestamp(), "message": "",
        "stderrTail": "no key\n",
    }  # fmt: skip
    report = world.report(state="Exited", session=None, exit=exit_)
    seen = world.seen(pods=(world.pod(server=world.terminated(137, "Error")),), relay=RelayView(report))
    found = decide(seen).failure
    assert found is not None
    assert (found.exit_code, found.stderr_tail) == (3, "no key")


def test_the_nodes_word_that_memory_was_the_cause_wins(world: Any) -> None:
    exit_ = {"exitCode": 137, "signal": "SIGKILL", "reason": "Signaled", "time": 1.0, "stderrTail": "big\n"}
    report = world.report(state="Exited", session=None, exit=exit_)
    seen = world.seen(pods=(world.pod(server=world.terminated(137, "OOMKilled")),), relay=RelayView(report))
    found = decide(seen).failure
    assert found is not None
    assert (found.reason, found.stderr_tail) == (Reason.OOM_KILLED, "big")


def test_messages_name_the_field_and_the_cure(world: Any) -> None:
    missing = failure.from_container(
        world.terminated(127, "Error", told(127, "CommandNotFound", message='"nosuch"')), world.now
    )
    assert missing.message.startswith("spec.command: the image has no such program")
    memory = failure.from_container(world.terminated(137, "OOMKilled"), world.now)
    assert "spec.resources.limits.memory" in memory.message
    ended = failure.from_container(world.terminated(0, "Completed"), world.now)
    assert "exited with 0" in ended.message


@pytest.mark.parametrize(
    ("raw", "limit", "made"),
    [
        ("a\nb\tc", 9, "a b c"),
        ("abcdef", 4, "abc…"),
        ("a\x00b\x1bc", 9, "a\ufffdb\ufffdc"),
        ("é😀", 9, "é😀"),
    ],
)
def test_a_line_is_one_line_clean_and_cut(raw: str, limit: int, made: str) -> None:
    assert text.line(raw, limit) == made


def test_a_tail_keeps_lines_and_the_end() -> None:
    assert text.tail("one\ntwo\nthree\n", 9) == "…wo\nthree"
