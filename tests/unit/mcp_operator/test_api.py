"""Models of spec and status: what they read, refuse and write."""

import ast
import inspect
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from typing import Any

import pytest
from pydantic import ValidationError

from mcp_operator.core.api import (
    AuthType,
    ConditionStatus,
    ConditionType,
    ErrorPhase,
    MCPServerSpec,
    MCPServerStatus,
    Phase,
    Reason,
    RecoveryAction,
)
from mcp_operator.core.api.model import camel, rfc3339
from mcp_operator.core.api.status import Condition, RecoveryStatus, ServerError, SessionStatus, Tool

NOON = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)


def test_an_empty_spec_gets_the_documented_defaults() -> None:
    spec = MCPServerSpec.parse(None)
    assert spec.session.model_dump() == {
        "protocol": "Auto",
        "http_sse": False,
        "client_capabilities": (),
        "startup_timeout_seconds": 120,
        "call_timeout_seconds": 30,
        "max_call_seconds": 0,
        "idle_timeout_seconds": 7200,
        "on_server_restart": "Resume",
        "mode": "Shared",
        "max_processes": 4,
        "process_memory_limit": None,
        "max_clients": 1000,
        "max_message_bytes": 16_777_216,
        "limits": {"calls_per_minute": None, "burst": None, "concurrent_calls": None},
        "audit": "None",
        "allowed_hosts": (),
    }
    assert spec.recovery.model_dump() == {
        "max_retries": 3,
        "backoff_seconds": (2, 4, 8),
        "stable_seconds": 600,
        "retry_after_error_seconds": 300,
    }
    assert spec.auth.type is AuthType.BEARER
    assert spec.suspend is False
    assert spec.command == ()
    assert spec.image is None


def test_core_objects_are_carried_unchanged() -> None:
    env = {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "later": True}}}
    spec = MCPServerSpec.parse({"command": ["a"], "env": [env], "affinity": {"nodeAffinity": {}}})
    assert spec.env == (env,)
    assert spec.document()["env"] == [env]
    assert spec.document()["affinity"] == {"nodeAffinity": {}}


def test_fields_of_a_newer_definition_are_ignored() -> None:
    assert MCPServerSpec.parse({"command": ["a"], "future": {"url": "x"}}).command == ("a",)


def test_a_read_spec_cannot_be_changed() -> None:
    spec = MCPServerSpec.parse({"command": ["a"]})
    with pytest.raises(ValidationError):
        spec.suspend = True


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"recovery": {"maxRetries": 11}}, "maxRetries"),
        ({"recovery": {"backoffSeconds": [0]}}, "backoffSeconds"),
        ({"session": {"startupTimeoutSeconds": 0}}, "startupTimeoutSeconds"),
        ({"session": {"allowedHosts": ["a,b"]}}, "allowedHosts"),
        ({"session": {"allowedHosts": ["a"] * 65}}, "allowedHosts"),
        ({"auth": {"type": "Basic"}}, "type"),
        ({"auth": {"type": "JWT", "jwt": {"issuer": "http://plain.example", "audiences": ["a"]}}}, "issuer"),
        ({"auth": {"type": "JWT", "jwt": {"issuer": "https://i.example"}}}, "audiences"),
        ({"auth": {"type": "JWT", "jwt": {"issuer": "https://i.example/?a", "audiences": ["a"]}}}, "issuer"),
        (
            {"auth": {"jwt": {"issuer": "https://i.example", "audiences": ["a"], "algorithms": ["HS256"]}}},
            "algorithms",
        ),
        ({"auth": {"bearer": {"secretRef": {}}}}, "name"),
        ({"imagePullPolicy": "Sometimes"}, "imagePullPolicy"),
        ({"command": "uvx mcp-server-time"}, "command"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_value_outside_its_bounds_is_refused_by_name(document: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        MCPServerSpec.parse(document)
    assert field in caught.value.errors()[0]["loc"]


@pytest.mark.parametrize(
    ("entry", "good"),
    [
        ("mcp.example.com", True), ("localhost:8080", True), ("*.example.com", True), ("*", True),
        ("[fd00::1]", True), ("[::1]:80", True), ("10.0.0.1:80", True), ("my_host", True),
        ("", False), ("a b", False), ("a,b", False), ("https://a", False), ("a/b", False), ("*.", False),
        ("*.example.com:80", False), ("a.*", False), ("-a", False), ("a..b", False), ("a:", False),
        ("*a", False), ("a" * 300, False),
    ],
)  # fmt: skip
def test_an_allowed_host_is_a_name_as_the_relay_compares_it(entry: str, good: bool) -> None:
    document = {"session": {"allowedHosts": [entry]}}
    if good:
        assert MCPServerSpec.parse(document).session.allowed_hosts == (entry,)
    else:
        with pytest.raises(ValidationError):
            MCPServerSpec.parse(document)


def test_a_bearer_secret_is_read_with_the_usual_key() -> None:
    spec = MCPServerSpec.parse({"auth": {"bearer": {"secretRef": {"name": "mine"}}}})
    assert spec.auth.bearer is not None
    assert spec.auth.bearer.secret_ref.key == "token"


def test_a_status_survives_writing_and_reading() -> None:
    status = MCPServerStatus(
        observed_generation=2,
        phase=Phase.ERROR,
        conditions=(
            Condition(
                type=ConditionType.READY,
                status=ConditionStatus.FALSE,
                reason=Reason.COMMAND_NOT_FOUND,
                message="no such file",
                last_transition_time=NOON,
                observed_generation=2,
            ),
        ),
        error=ServerError(
            phase=ErrorPhase.PROCESS_START,
            reason=Reason.COMMAND_NOT_FOUND,
            message="no such file",
            exit_code=127,
            time=NOON,
        ),
        recovery=RecoveryStatus(
            action=RecoveryAction.RECREATE,
            attempt=1,
            max_retries=3,
            next_attempt_time=NOON + timedelta(milliseconds=2250),
        ),
        session=SessionStatus(pod_name="mcp-a-1", pod_uid="u", epoch=1, capabilities=("tools",)),
        tools=(Tool(name="t", description="d"),),
    )
    document = status.document()
    assert MCPServerStatus.parse(document) == status
    assert document["session"]["podUID"] == "u"
    assert document["conditions"][0]["lastTransitionTime"] == "2026-01-31T12:00:00Z"
    assert document["recovery"]["nextAttemptTime"] == "2026-01-31T12:00:02.250Z"
    assert "address" not in document


@pytest.mark.parametrize(
    "broken",
    [
        {"tools": [{"name": "t"}] * 129},
        {"tools": [{"name": "t", "description": "x" * 257}]},
        {"error": {"phase": "Process", "reason": "R", "message": "x" * 1025, "time": "2026-01-31T12:00:00Z"}},
        {
            "error": {
                "phase": "Process",
                "reason": "R",
                "message": "",
                "time": "2026-01-31T12:00:00Z",
                "stderrTail": "x" * 2049,
            }
        },
    ],
    ids=["too many tools", "long description", "long message", "long stderr"],
)
def test_a_status_beyond_its_bounds_cannot_be_made(broken: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MCPServerStatus.parse(broken)


def test_a_reason_of_a_newer_operator_can_be_read() -> None:
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": "NotInventedYet",
        "message": "",
        "lastTransitionTime": "2026-01-31T12:00:00Z",
    }
    assert MCPServerStatus.parse({"conditions": [condition]}).conditions[0].reason == "NotInventedYet"


@pytest.mark.parametrize(
    ("moment", "written"),
    [
        (NOON, "2026-01-31T12:00:00Z"),
        (NOON + timedelta(milliseconds=250), "2026-01-31T12:00:00.250Z"),
        (NOON + timedelta(microseconds=5), "2026-01-31T12:00:00Z"),
        (datetime(2026, 1, 31, 13, 0, tzinfo=timezone(timedelta(hours=1))), "2026-01-31T12:00:00Z"),
    ],
)
def test_times_are_written_in_utc_with_milliseconds_where_there_are_any(
    moment: datetime, written: str
) -> None:
    assert rfc3339(moment) == written


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(ValidationError):
        RecoveryStatus(next_attempt_time=datetime(2026, 1, 31))  # noqa: DTZ001 - the value that must be refused


def test_names_are_spelled_as_kubernetes_does() -> None:
    assert [camel(name) for name in ("pod_uid", "max_message_bytes", "url")] == [
        "podUID",
        "maxMessageBytes",
        "url",
    ]


@pytest.mark.parametrize(
    "vocabulary",
    [Phase, ConditionType, Reason, RecoveryAction, AuthType, ErrorPhase],
    ids=lambda e: e.__name__,
)
def test_every_word_of_the_vocabulary_is_documented(vocabulary: type[StrEnum]) -> None:
    body = ast.parse(inspect.getsource(vocabulary)).body[0]
    assert isinstance(body, ast.ClassDef)
    documented = sum(
        isinstance(after, ast.Expr) and isinstance(before, ast.Assign)
        for before, after in zip(body.body, body.body[1:], strict=False)
    )
    assert documented == len(vocabulary)


def test_reasons_are_camel_case_words() -> None:
    assert all(reason.value.isalnum() and reason.value[0].isupper() for reason in Reason)
