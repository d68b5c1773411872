"""Why something failed, read from what nodes, launcher and relay report."""

import json
from typing import Any

import pytest

from mcp_operator.core import failure, status, text
from mcp_operator.core.api import ErrorPhase, Reason
from mcp_operator.core.decide import decide
from mcp_operator.core.observation import RelayView
from mcp_operator.core.plan import Plan

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
        (
            *(137, "Error", told(137, "MemoryLimitExceeded", "SIGKILL")),
            (PROCESS, Reason.OOM_KILLED, 137, "SIGKILL"),
        ),
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


def test_one_process_above_its_own_limit_names_that_limit_and_not_the_containers(world: Any) -> None:
    said = "the process was killed because it used more than its memory limit of 64Mi"
    message = told(137, "MemoryLimitExceeded", "SIGKILL", message=said)
    found = failure.from_container(world.terminated(137, "Error", message), world.now)
    assert found.message == f"{said}: raise spec.session.processMemoryLimit"


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


NPM_404 = """npm warn exec The following package was not found and will be installed
npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/mcp-servr - Not found
npm error 404
npm error 404  'mcp-servr@*' is not in this registry.
npm notice
npm error A complete log of this run can be found in: /home/mcp/.npm/_logs/x-debug-0.log
"""
NPM_NETWORK = """npm error code ENOTFOUND
npm error syscall getaddrinfo
npm error errno ENOTFOUND
npm error network request to https://registry.npmjs.org/x failed, reason: getaddrinfo ENOTFOUND
npm error network This is a problem related to network connectivity.
npm error A complete log of this run can be found in: /home/mcp/.npm/_logs/x-debug-0.log
"""
NODE = """file:///app/server.js:3
  throw new TypeError("x")
        ^

TypeError: API_KEY is not set
    at file:///app/server.js:3:9

Node.js v24.1.0
"""
PYTHON = """Traceback (most recent call last):
  File "server.py", line 1, in <module>
KeyError: 'API_KEY'

During handling of the above exception, another exception occurred:

RuntimeError: API_KEY is not set
"""


@pytest.mark.parametrize(
    ("tail", "said"),
    [
        (NPM_404, "npm error 404 Not Found - GET https://registry.npmjs.org/mcp-servr - Not found"),
        (
            NPM_NETWORK,
            "npm error network request to https://registry.npmjs.org/x failed, reason: getaddrinfo ENOTFOUND",
        ),
        (NODE, "TypeError: API_KEY is not set"),
        (PYTHON, "RuntimeError: API_KEY is not set"),
        ("one\n\n \nlast\n\n", "last"),
        ("npm notice\nNode.js v24.1.0\n", ""),
        ("", ""),
    ],
    ids=["npm 404", "npm network", "node", "python", "blank lines", "nothing but trailers", "nothing"],
)
def test_the_most_telling_line_of_stderr_is_quoted(world: Any, tail: str, said: str) -> None:
    found = failure.from_container(
        world.terminated(1, "Error", told(1, "Exited", stderrTail=tail)), world.now
    )
    assert found.message == "the server process exited with 1" + (f": {said}" if said else "")


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        (["uvx mcp-server-time"], 'write one list item for each word, as in ["uvx", "mcp-server-time"]'),
        (["uvx", "mcp server"], ""),
    ],
)
def test_a_command_line_in_one_item_is_told_so(world: Any, command: list[str], hint: str) -> None:
    ended = world.terminated(127, "Error", told(127, "CommandNotFound", message="not found"))
    seen = world.seen(spec=world.spec(command=command), pods=(world.pod(server=ended),))
    found = decide(seen).failure
    assert found is not None
    assert found.message.endswith(hint)
    assert ("list item" in found.message) is bool(hint)


@pytest.mark.parametrize(
    ("recovery", "outlook"),
    [
        ({}, "retry 1 of 3 follows at 12:00:02 UTC: "),
        ({"maxRetries": 0}, "no retries (spec.recovery.maxRetries is 0); next attempt at 12:05:00 UTC: "),
        (
            {"maxRetries": 0, "retryAfterErrorSeconds": 0},
            "no retries (spec.recovery.maxRetries is 0); waiting for a change: ",
        ),
    ],
)
def test_what_follows_a_failure_is_told_with_its_time(world: Any, recovery: Any, outlook: str) -> None:
    pods = (world.pod(server=world.terminated(1)),)
    plan = decide(world.seen(pods=pods, spec=world.spec(recovery=recovery)))
    assert plan.message.startswith(outlook)


NOISE = "The server writes to stdout what is no JSON-RPC, see the log of the relay"
LATE = "The server has not answered initialize within 120 seconds of its start"
WHERE = "kubectl logs --namespace default mcp-time-1 --container relay"


@pytest.mark.parametrize(
    ("reason", "message", "detail"),
    [
        ("StartupTimeout", LATE, ""),
        (
            "StartupTimeout",
            f"{LATE}. {NOISE}",
            f" (The server writes to stdout what is no JSON-RPC: {WHERE})",
        ),
        ("NoJsonRpc", NOISE, f" (The server writes to stdout what is no JSON-RPC: {WHERE})"),
    ],
)
def test_a_start_that_takes_too_long_is_told_once_and_with_the_command_to_read_on(
    world: Any, reason: str, message: str, detail: str
) -> None:
    error = {"phase": "Initialize", "reason": reason, "message": message}
    seen = world.seen(pods=(world.pod(server=world.running(121)),), relay=world.connecting(121, error=error))
    found = decide(seen).failure
    assert found is not None
    assert found.message.startswith(
        f"the server did not answer `initialize` within 120 s{detail}: does it speak MCP on stdout? "
    )


def test_what_a_slow_start_wrote_last_is_told_while_it_lasts_and_when_it_took_too_long(world: Any) -> None:
    def plan(seconds: int) -> Plan:
        telling = world.connecting(seconds, progress="Downloading numpy\x1b")
        return decide(world.seen(pods=(world.pod(server=world.running(seconds)),), relay=telling))

    early, late = plan(30), plan(121)
    assert early.message.endswith("its answer to `initialize` is awaited; it says: Downloading numpy\ufffd")
    assert early.failure is None
    assert late.failure is not None
    assert late.failure.stderr_tail == "Downloading numpy\ufffd"
