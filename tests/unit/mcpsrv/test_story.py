"""`why`: the order of what happened, and the cures."""

from typing import Any

import pytest

from mcp_operator.core.api import Reason
from mcpsrv.core import cures, state, story, when
from mcpsrv.core.progress import Timeline
from mcpsrv.core.story import Facts

Json = dict[str, Any]


def condition(
    kind: str, status: str, reason: str, message: str = "", time: str = "2026-01-01T10:00:05Z"
) -> Json:
    return {
        "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": time,
    }  # fmt: skip


def server(phase: str = "Error", *conditions: Json, **status: Any) -> Json:
    return {
        "metadata": {
            "name": "demo", "namespace": "tools", "uid": "u", "generation": 2,
            "creationTimestamp": "2026-01-01T10:00:00Z",
        },
        "spec": {},
        "status": {"phase": phase, "observedGeneration": 2, "conditions": list(conditions), **status},
    }  # fmt: skip


FAILED = server(
    "Error",
    condition("Accepted", "True", "Valid"),
    condition("Available", "False", "ProcessExited", "the server process exited with 1"),
    condition("Stalled", "True", "BackoffExhausted", "all retries failed"),
    error={
        "phase": "Process", "reason": "ProcessExited", "message": "exited with 1", "exitCode": 1,
        "time": "2026-01-01T10:00:04Z", "stderrTail": "DATABASE_URL is not set",
    },
    recovery={"nextAttemptTime": "2026-01-01T10:05:00Z"},
)  # fmt: skip


def test_a_failed_server_is_told_in_order_with_its_last_words_and_the_most_telling_cure_first() -> None:
    event = {
        "metadata": {}, "reason": "Recreating", "note": "a new pod after 2 s", "type": "Warning",
        "eventTime": "2026-01-01T10:00:02.5Z", "regarding": {"kind": "MCPServer", "name": "demo"},
    }  # fmt: skip
    told = story.tell(Facts(FAILED, events=(event,)))
    assert told.headline == "not Ready, phase Error: BackoffExhausted: all retries failed"
    assert not told.ready
    times = [moment.time for moment in told.moments]
    assert times == sorted(times)
    assert [moment.reason for moment in told.moments][:3] == ["Created", "Recreating", "ProcessExited"]
    assert told.output == ("DATABASE_URL is not set",)
    assert told.advice[0].startswith("A variable is missing: add it to spec.env")
    assert any("mcpsrv restart demo" in advice for advice in told.advice)
    assert told.next_attempt == "2026-01-01T10:05:00Z"


def test_the_log_of_the_pod_says_more_than_what_the_operator_kept() -> None:
    told = story.tell(Facts(FAILED, output="\n".join(f"line {n}" for n in range(20))))
    assert told.output == tuple(f"line {n}" for n in range(12, 20))


def test_a_ready_server_needs_nothing() -> None:
    ready = server(
        "Connected", condition("Ready", "True", "Connected"), toolCount=2, recovery={"restarts": 1}
    )
    told = story.tell(Facts(ready))
    assert (told.ready, told.headline, told.advice) == (True, "Ready, 2 tools, 1 restarts so far", ())


def test_a_status_about_an_older_spec_is_not_ready() -> None:
    old = server("Connected", condition("Ready", "True", "Connected"))
    old["metadata"]["generation"] = 3
    assert not state.is_ready(old)


def test_containers_that_wait_end_the_story_and_those_that_ended_have_their_place() -> None:
    pod = {
        "metadata": {"name": "mcp-demo-1", "creationTimestamp": "2026-01-01T10:00:01Z"},
        "status": {
            "containerStatuses": [
                {
                    "name": "server",
                    "state": {
                        "terminated": {
                            "exitCode": 137, "signal": 9, "reason": "OOMKilled",
                            "startedAt": "2026-01-01T10:00:02Z", "finishedAt": "2026-01-01T10:00:03Z",
                        }
                    },
                }
            ],
            "initContainerStatuses": [
                {"name": "relay", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "none"}}}
            ],
        },
    }  # fmt: skip
    told = story.tell(Facts(FAILED, pods=(pod,)))
    reasons = [(moment.reason, moment.about) for moment in told.moments]
    assert ("OOMKilled", "mcp-demo-1/server") in reasons
    assert reasons[-1] == ("ImagePullBackOff", "mcp-demo-1/relay")
    assert reasons.index(("PodCreated", "mcp-demo-1")) < reasons.index(("OOMKilled", "mcp-demo-1/server"))


def test_what_is_told_by_a_condition_and_an_event_appears_once() -> None:
    ready = server("Connected", condition("Ready", "True", "Connected", "clients are served"))
    event = {
        "metadata": {}, "reason": "Connected", "note": "initialised, 2 tools", "type": "Normal",
        "eventTime": "2026-01-01T10:00:05.400Z", "regarding": {"kind": "MCPServer", "name": "demo"},
    }  # fmt: skip
    told = story.tell(Facts(ready, events=(event,)))
    assert [moment.reason for moment in told.moments] == ["Created", "Connected"]


def test_a_long_story_is_cut_at_its_beginning() -> None:
    events = tuple(
        {
            "metadata": {}, "reason": f"R{n}", "note": str(n), "type": "Normal",
            "eventTime": f"2026-01-01T11:00:{n:02}Z", "regarding": {"kind": "Pod", "name": "p"},
        }
        for n in range(40)
    )  # fmt: skip
    told = story.tell(Facts(FAILED, events=events))
    assert len(told.moments) == story.MAX_MOMENTS
    assert told.moments[-1].reason == "R39"
    # Beside them: that it was made, that it is accepted, and the error.
    assert told.omitted == 40 + 3 - story.MAX_MOMENTS


def test_every_reason_of_the_api_has_a_word_on_what_to_do() -> None:
    assert {reason.value for reason in Reason} - set(cures.BY_REASON) == set()


def test_no_cure_speaks_of_a_placeholder() -> None:
    for reason in Reason:
        assert "{" not in cures.for_reason(reason, "demo", "mcp-demo-1")


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (Reason.UNSCHEDULABLE, "PersistentVolumeClaim: create it"),
        (Reason.ADMISSION_REFUSED, "An invalid value: correct that field"),
    ],
)
def test_a_reason_with_several_causes_has_a_cure_for_each(reason: Reason, words: str) -> None:
    assert words in cures.for_reason(reason, "demo")


def test_phase_and_reason_are_told_once_where_they_are_the_same_word() -> None:
    assert state.stage("Suspended", "Suspended") == "Suspended"
    assert state.stage("Error", "BackoffExhausted") == "Error, BackoffExhausted"


def test_a_reason_of_a_newer_operator_has_no_cure_and_is_no_error() -> None:
    assert cures.for_reason("Unheard", "demo") == ""


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("npm error 404 Not Found - GET https://registry/nope", "name or version"),
        ("  x No solution found when resolving tool dependencies", "do not fit together"),
        ("Error: getaddrinfo ENOTFOUND api.example", "host name cannot be resolved"),
        ("connect ECONNREFUSED 127.0.0.1:5432", "cannot be reached"),
        ("SELF_SIGNED_CERT_IN_CHAIN: self-signed certificate", "certificate is not trusted"),
        ("EROFS: read-only file system, open '/data/x'", "writes outside of its home"),
        ("EACCES: permission denied, mkdir '/x'", "may not read or write"),
        ("FATAL ERROR: JavaScript heap out of memory", "resources.limits.memory"),
        ("exec /srv: exec format error", "another processor"),
        ("401 Unauthorized", "refuses the credentials"),
        ("GITHUB_PERSONAL_ACCESS_TOKEN not set", "variable is missing"),
        ("Please provide the BRAVE_API_KEY environment variable", "variable is missing"),
        ("Error: ENOENT: no such file or directory, stat '/Users/me'", "does not exist in the pod"),
        ("ModuleNotFoundError: No module named 'x'", "module is missing"),
        ("INFO: Uvicorn running on http://0.0.0.0:8000", "seems to speak HTTP"),
        ("usage: server [-h] --db DB", "Check the arguments"),
    ],
)
def test_the_last_lines_of_a_server_give_the_cause_away(text: str, advice: str) -> None:
    assert advice in " ".join(cures.for_output(text))


@pytest.mark.parametrize("text", ["", "Secure MCP Filesystem Server running on stdio", "INFO ready"])
def test_ordinary_lines_give_nothing_away(text: str) -> None:
    assert cures.for_output(text) == ()


def test_phases_are_told_once_with_the_time_that_each_took() -> None:
    timeline = Timeline()
    pending = server("Pending", condition("Available", "False", "PodPending"))
    connecting = server("Connecting", condition("Verified", "False", "Initializing"))
    for at, seen in ((0.1, pending), (0.4, pending), (1.1, connecting), (3.1, server("Connected"))):
        timeline = timeline.seen(seen, at)
    steps = timeline.ended(4.0).steps
    assert [(step.phase, round(step.seconds or 0, 3)) for step in steps] == [
        ("Pending", 1.0), ("Connecting", 2.0), ("Connected", 0.9),
    ]  # fmt: skip
    assert timeline.ended(4.0).ended(9.0) == timeline.ended(4.0)


@pytest.mark.parametrize(
    ("time", "words"),
    [
        ("2026-01-01T10:00:00Z", "now"),
        ("2026-01-01T09:59:50Z", "10 s ago"),
        ("2026-01-01T09:00:00Z", "1 h ago"),
        ("2025-12-30T10:00:00Z", "2 d ago"),
        ("now", "now"),
        ("", "?"),
    ],
)
def test_times_are_told_in_their_largest_unit(time: str, words: str) -> None:
    from datetime import UTC, datetime

    assert when.ago(time, datetime(2026, 1, 1, 10, tzinfo=UTC)) == words
