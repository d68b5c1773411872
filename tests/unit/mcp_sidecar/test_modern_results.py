import json
from typing import Any

import pytest

from mcp_sidecar.core import frames, jsontext
from mcp_sidecar.core.modern import discover, members, results

INFO = {"name": "s", "version": "1"}
META = {"io.modelcontextprotocol/serverInfo": INFO}


def answer(result: str, tail: str = "") -> bytes:
    return f'{{"jsonrpc":"2.0","id":7,"result":{result}{tail}}}'.encode()


def result_of(data: Any) -> Any:
    return json.loads(bytes(data))["result"]


@pytest.mark.parametrize(
    ("method", "given", "wanted"),
    [
        ("tools/call", "{}", {"resultType": "complete", "_meta": META}),
        ("tools/list", "{}", {"resultType": "complete", "_meta": META, "ttlMs": 0, "cacheScope": "private"}),
        (
            "resources/read",
            '{"ttlMs":5,"cacheScope":"public","_meta":{"x":1}}',
            {"resultType": "complete", "ttlMs": 5, "cacheScope": "public", "_meta": {"x": 1, **META}},
        ),
        ("tools/call", '{"resultType":"task","_meta":null}', {"resultType": "task", "_meta": META}),
        ("tools/call", '{"_meta":{"io.modelcontextprotocol/serverInfo":1}}', None),
    ],
)
def test_a_result_gets_what_this_revision_wants_of_it(method: str, given: str, wanted: Any) -> None:
    expected = wanted or {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": 1}}
    assert result_of(results.completed(answer(given), method, INFO)) == expected


def test_what_is_completed_stays_else_as_it_was_written() -> None:
    given = answer(r'{"big":123456789012345678901234567890,"n":1.0E2,"s":"\ud800","z":null}', ' ,"x" : 1')
    completed = bytes(results.completed(given, "tools/call", INFO))
    for text in (b'"big":123456789012345678901234567890', b'"n":1.0E2', rb'"s":"\ud800"', b'"x" : 1'):
        assert text in completed
    start, end = results.moved(completed)
    assert completed[start:end] == b"7"


@pytest.mark.parametrize("shape", ["{%s}", '{"content":"%s"}', '{"resultType":"task","content":"%s"}'])
def test_a_large_result_gets_what_can_stand_in_front(shape: str) -> None:
    filling = " " * 70_000 if shape == "{%s}" else "x" * 70_000
    completed = results.completed(answer(shape.replace("%s", filling)), "tools/list", INFO)
    result = result_of(completed)
    assert result["resultType"] == ("task" if "task" in shape else "complete")
    assert result["cacheScope"] == "private"
    start, end = results.moved(completed)
    assert bytes(completed[start:end]) == b"7"


def test_a_large_result_with_its_id_behind_it_is_found_again() -> None:
    given = bytearray(b'{"result":{"a":"' + b"x" * 70_000 + b'"},"jsonrpc":"2.0","id":7}')
    completed = results.completed(given, "tools/call", INFO)
    start, end = results.moved(completed)
    assert bytes(completed[start:end]) == b"7"
    assert result_of(completed)["resultType"] == "complete"


def test_a_result_that_is_no_object_passes() -> None:
    assert results.completed(answer("[1]"), "tools/call", INFO) == answer("[1]")
    assert results.plain(answer("[1]"), "tools/call") == answer("[1]")


@pytest.mark.parametrize(
    ("method", "given", "left"),
    [
        (
            "tools/list",
            {"tools": [], "resultType": "complete", "ttlMs": 1, "cacheScope": "public"},
            {"tools": []},
        ),
        ("tools/call", {"ttlMs": 1, "resultType": "complete", "_meta": META}, {"ttlMs": 1}),
        ("tools/call", {"_meta": {"a": 1, **META}}, {"_meta": {"a": 1}}),
        ("tools/call", {"content": []}, {"content": []}),
    ],
)
def test_a_client_with_a_session_sees_nothing_of_this_revision(method: str, given: Any, left: Any) -> None:
    assert result_of(results.plain(answer(json.dumps(given)), method)) == left


def test_a_wish_for_input_is_told_from_text_about_one() -> None:
    wish = '{"resultType":"input_required","requestState":"s"}'
    assert results.wants_input(answer(wish)) == json.loads(wish)
    assert results.wants_input(answer('{"content":"\\"input_required\\""}')) is None
    assert results.wants_input(answer('{"resultType":"complete","x":"input_required"}')) is None


@pytest.mark.parametrize(
    ("method", "code", "told", "status"),
    [
        ("resources/read", -32002, -32602, 400),
        ("tools/call", -32002, -32002, 200),
        ("resources/read", -32601, -32601, 404),
        ("tools/call", 1, 1, 200),
    ],
)
def test_errors_get_the_codes_and_statuses_of_this_revision(
    method: str, code: int, told: int, status: int
) -> None:
    data = frames.error(b"7", code, "no", {"uri": "x"})
    renamed = results.renamed(data, method)
    assert json.loads(renamed)["error"] == {"code": told, "message": "no", "data": {"uri": "x"}}
    assert results.status(renamed) == status


def test_what_a_server_says_of_itself_survives_the_way_to_the_other_shape_and_back() -> None:
    answer = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {"listChanged": True}, "tasks": {}},
        "serverInfo": INFO,
        "instructions": "be kind",
    }
    found = discover.from_initialize(answer)
    assert found["supportedVersions"] == ["2026-07-28"]
    assert (found["resultType"], found["ttlMs"], found["cacheScope"]) == ("complete", 0, "private")
    back = discover.to_initialize(found, "fallback")
    assert back == {
        "protocolVersion": "2026-07-28",
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": INFO,
        "instructions": "be kind",
    }


def test_a_server_that_does_not_say_who_it_is_gets_the_name_it_has_here() -> None:
    found = discover.to_initialize({"supportedVersions": ["2026-07-28"], "capabilities": {}}, "here")
    assert found["serverInfo"] == {"name": "here", "version": ""}


@pytest.mark.parametrize(
    ("message", "reason", "words"),
    [
        ({"error": {"code": -32601, "message": "what?"}}, "InitializeRefused", "what? (code -32601)"),
        ({"result": {}}, "InvalidInitializeResult", "no supportedVersions"),
        ({"result": []}, "InvalidInitializeResult", "no supportedVersions"),
        ({"result": {"supportedVersions": ["2099-01-01"]}}, "UnsupportedProtocolVersion", "2099-01-01"),
        (
            {"result": {"supportedVersions": ["2026-07-28"], "instructions": "x" * 2**20}},
            "InvalidInitializeResult",
            "may have",
        ),
    ],
)
def test_an_answer_to_discover_that_cannot_be_used_says_why(message: Any, reason: str, words: str) -> None:
    problem = discover.judge(message)
    assert problem is not None
    assert (problem.phase, problem.reason, words in problem.message) == ("Initialize", reason, True)


@pytest.mark.parametrize(
    ("data", "drop", "put", "left"),
    [
        (b'{"a":1,"b":2}', ("a",), {}, b'{"b":2}'),
        (b' { "a" : 1 , "b" : [ 1 ] } ', ("b",), {"c": b"3"}, b' {"a" : 1,"c":3}'),
        (b"{}", (), {"a": b"null"}, b'{"a":null}'),
        (b'{"a":1,"a":2}', (), {"a": b"3"}, b'{"a":3}'),
    ],
)
def test_members_are_edited_in_place(
    data: bytes, drop: tuple[str, ...], put: dict[str, bytes], left: bytes
) -> None:
    assert members.edited(data, (), drop=drop, put=put) == left


def test_editing_what_is_no_object_is_refused() -> None:
    with pytest.raises(KeyError):
        members.edited(b'{"a":[1]}', ("a",), put={"b": b"1"})
    with pytest.raises(KeyError):
        members.value(b'{"a":1}', "b")
    assert members.value(b'{"a": 1e400 }', "a") == b"1e400"
    assert jsontext.loads(members.edited(b'{"a":{"b":1}}', ("a",), drop=("b",))) == {"a": {}}
