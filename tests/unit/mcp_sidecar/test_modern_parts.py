import json
from typing import Any

import pytest

from mcp_sidecar.core import opening
from mcp_sidecar.core.document import Problem
from mcp_sidecar.core.modern import methods, state, subscriptions
from mcp_sidecar.core.modern.errors import RejectionError
from mcp_sidecar.core.modern.subscriptions import Filter
from mcp_sidecar.core.opening import Opened

CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True},
    "prompts": {},
    "resources": {"subscribe": True, "listChanged": True},
}
KEY = bytes(range(12))


# Which question comes first, and what its answer means.

LEGACY_ANSWER = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s"}}
MODERN_ANSWER = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}


@pytest.mark.parametrize(
    ("protocol", "asked", "message", "meaning"),
    [
        ("Auto", "initialize", {"result": LEGACY_ANSWER}, "2025-11-25"),
        ("Auto", "initialize", {"error": {"code": -32601}}, "server/discover"),
        ("Auto", "initialize", {"error": {"code": -32022}}, "server/discover"),
        ("Auto", "initialize", {"error": {"code": -32602}}, "server/discover"),
        ("Auto", "initialize", {"error": {"code": -32603}}, "InitializeRefused"),
        ("Auto", "initialize", {"error": "odd"}, "InitializeRefused"),
        ("Auto", "server/discover", {"result": MODERN_ANSWER}, "2026-07-28"),
        ("Auto", "server/discover", {"error": {"code": -32601}}, "InitializeRefused"),
        ("Legacy", "initialize", {"error": {"code": -32601}}, "InitializeRefused"),
        ("Modern", "server/discover", {"result": MODERN_ANSWER}, "2026-07-28"),
        ("Modern", "server/discover", {"error": {"code": -32601}}, "InitializeRefused"),
    ],
)
def test_the_answer_to_the_first_question_decides(
    protocol: str, asked: str, message: Any, meaning: str
) -> None:
    read = opening.read(protocol, asked, message, "name")
    if isinstance(read, Opened):
        assert read.answer["protocolVersion"] == meaning
    else:
        assert (read.reason if isinstance(read, Problem) else read) == meaning


def test_only_who_is_told_to_begins_without_a_handshake() -> None:
    assert {p: opening.first(p) for p in opening.PROTOCOLS} == {
        "Auto": "initialize",
        "Legacy": "initialize",
        "Modern": "server/discover",
    }
    assert opening.params("initialize", ("roots",))["capabilities"] == {"roots": {}}
    assert "io.modelcontextprotocol/protocolVersion" in opening.params("server/discover", ())["_meta"]


# Methods.


@pytest.mark.parametrize(
    ("method", "allowed"),
    [
        ("server/discover", True),
        ("subscriptions/listen", True),
        ("tools/call", True),
        ("completion/complete", False),
        ("initialize", False),
        ("ping", False),
        ("logging/setLevel", False),
        ("resources/subscribe", False),
        ("tasks/get", False),
        ("unknown/method", False),
    ],
)
def test_what_the_revision_lacks_is_not_offered(method: str, allowed: bool) -> None:
    assert methods.may_request(method, {**CAPABILITIES, "logging": {}, "tasks": {}}) is allowed


def test_methods_of_an_extension_are_offered_by_whoever_declares_it() -> None:
    declared: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}, "com.example/x": {}}}
    assert methods.may_request("tasks/get", declared)
    assert methods.may_request("x/y", declared)
    assert not methods.may_request("tasks/result", declared)


# `requestState`.


def test_a_state_is_good_for_its_request_its_subject_its_server_and_its_time() -> None:
    states, bound = state.States(b"k", "uid"), state.binding("tools/call", {"name": "t"})
    text = states.sign(KEY, 1000, "me", bound)
    assert states.verify(text, 999, "me", bound) == KEY
    other = state.binding("tools/call", {"name": "u"})
    for refused in (
        states.verify(text, 1000, "me", bound),
        states.verify(text, 999, "you", bound),
        states.verify(text, 999, "me", other),
        state.States(b"k", "other").verify(text, 999, "me", bound),
        state.States(b"x", "uid").verify(text, 999, "me", bound),
        states.verify(text + "=", 999, "me", bound),
        states.verify(text + "-TAMPERED", 999, "me", bound),
        states.verify(text[:-2] + "AA", 999, "me", bound),
        states.verify("", 999, "me", bound),
        states.verify("ä.ö", 999, "me", bound),
        states.verify("x" * 200, 999, "me", bound),
        states.verify(7, 999, "me", bound),
    ):
        assert refused is None


def test_the_repetition_of_a_request_is_known_by_what_it_asks_for() -> None:
    first = state.binding("tools/call", {"name": "t", "arguments": {"a": 1, "b": 2}, "_meta": {"x": 1}})
    again = {"arguments": {"b": 2, "a": 1}, "name": "t", "inputResponses": {}, "requestState": "s"}
    assert state.binding("tools/call", again) == first
    assert state.binding("prompts/get", again) != first


# Subscriptions.


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, Filter()),
        ({"toolsListChanged": True, "promptsListChanged": False}, Filter(("toolsListChanged",))),
        ({"resourceSubscriptions": ["a", "b", "a"]}, Filter(uris=("a", "b"))),
        ({"somethingNew": True}, Filter()),
    ],
)
def test_a_filter_says_what_is_wanted(asked: Any, found: Filter) -> None:
    assert subscriptions.wanted({"notifications": asked}) == found


@pytest.mark.parametrize(
    "params", [{}, {"notifications": []}, {"notifications": {"resourceSubscriptions": [1]}}]
)
def test_a_filter_without_sense_is_refused(params: Any) -> None:
    with pytest.raises(RejectionError) as told:
        subscriptions.wanted(params)
    assert told.value.code == -32602


def test_only_what_the_server_tells_of_is_acknowledged() -> None:
    asked = Filter(("toolsListChanged", "promptsListChanged", "resourcesListChanged"), ("a", "x" * 5000))
    possible = subscriptions.possible(asked, CAPABILITIES)
    assert possible == Filter(("toolsListChanged", "resourcesListChanged"), ("a",))
    assert subscriptions.possible(asked, {"tools": {}}) == Filter()
    assert subscriptions.everything(CAPABILITIES).fields == ("toolsListChanged", "resourcesListChanged")
    shown = json.loads(subscriptions.acknowledged(b'"i"', possible))
    assert shown["method"] == "notifications/subscriptions/acknowledged"
    assert shown["params"] == {
        "_meta": {"io.modelcontextprotocol/subscriptionId": "i"},
        "notifications": {
            "toolsListChanged": True,
            "resourcesListChanged": True,
            "resourceSubscriptions": ["a"],
        },
    }


@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","method":"n"}',
        b'{"jsonrpc":"2.0","method":"n","params":{}}',
        b'{"jsonrpc":"2.0","method":"n","params":{"uri":"a","_meta":{"x":1e400}}}',
    ],
)
def test_a_tag_is_put_on_and_taken_off(data: bytes) -> None:
    params = json.loads(data).get("params") or {}
    tagged = subscriptions.tagged(data, params, b'"i"')
    seen = json.loads(tagged)["params"]
    assert subscriptions.subscription(seen) == "i"
    assert (b"1e400" in tagged) == (b"1e400" in data)
    assert json.loads(subscriptions.untagged(tagged, seen)).get("params", {}) == params
    assert subscriptions.subscription(params) is None


def test_a_subscription_ends_with_a_result_that_names_it() -> None:
    ended = json.loads(subscriptions.ended(b"5"))
    assert ended["id"] == 5
    assert ended["result"] == {
        "resultType": "complete",
        "_meta": {"io.modelcontextprotocol/subscriptionId": 5},
    }
