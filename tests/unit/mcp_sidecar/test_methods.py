from typing import Any

import pytest

from mcp_sidecar.core import methods

FULL: dict[str, Any] = {
    "tools": {"listChanged": True}, "prompts": {}, "resources": {"subscribe": True, "listChanged": False},
    "logging": {}, "completions": {}, "experimental": {"vendor/x": {"a": 1}},
    "extensions": {"io.example/jobs": {}}, "gadgets": {},
}  # fmt: skip


@pytest.mark.parametrize("method", [
    "ping", "tools/list", "tools/call", "prompts/get", "resources/read", "resources/templates/list",
    "resources/subscribe", "logging/setLevel", "completion/complete", "vendor/echo", "x/y", "jobs/get",
    "gadgets/turn", "io.example/jobs",
])  # fmt: skip
def test_what_the_server_declared_may_pass(method: str) -> None:
    assert methods.may_request(method, "2025-11-25", FULL)


@pytest.mark.parametrize("method", [
    "tools/list", "prompts/list", "resources/list", "resources/subscribe", "logging/setLevel",
    "completion/complete", "tasks/get", "server/discover", "nonsense", "", "vendor/echo",
])  # fmt: skip
def test_what_the_server_did_not_declare_may_not_pass(method: str) -> None:
    assert not methods.may_request(method, "2025-11-25", {"experimental": {}})
    assert methods.may_request("ping", "2025-11-25", {})


def test_a_capability_may_be_declared_and_switched_off() -> None:
    assert not methods.may_request("resources/subscribe", "2025-11-25", {"resources": {"subscribe": False}})
    assert not methods.may_request("tools/list", "2025-11-25", {"tools": None})
    assert not methods.may_request("resources/subscribe", "2025-11-25", {"resources": "odd"})


def test_the_first_revision_has_completion_without_a_capability() -> None:
    assert methods.may_request("completion/complete", "2024-11-05", {})


def test_unknown_notifications_pass_in_declared_namespaces_only() -> None:
    assert methods.may_notify("notifications/vendor/news", FULL)
    assert methods.may_notify("vendor/news", FULL)
    assert not methods.may_notify("notifications/roots/list_changed", FULL)


def test_clients_hear_of_changed_lists_that_the_server_announces() -> None:
    assert methods.list_changed(FULL) == ("notifications/tools/list_changed",)
