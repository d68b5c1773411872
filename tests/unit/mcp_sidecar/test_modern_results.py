import json
from typing import Any

import pytest

from mcp_sidecar.core import frames, jsontext
from mcp_sidecar.core.lines import Line
from mcp_sidecar.core.modern import discover, members, results

INFO = {"name": "s", "version": "1"}
META = {"io.modelcontextprotocol/serverInfo": INFO}


def answer(result: str, tail: str = "") -> bytes:
    return f'{{"jsonrpc":"2.0","id":7,"result":{result}{tail}}}'.encode()


def result_of(data: Any) -> Any:
    return json.loads(bytes(data))["result"]


def completed(data: Line, method: str) -> Line:
    """The completed answer, whose id is where it is said to be."""
    start = bytes(data).index(b'"id":7') + 5
    done = results.completed(results.Answer(data, start, start + 1), method, json.dumps(INFO).encode())
    assert bytes(done.data[done.start : done.end]) == b"7"
    assert json.loads(bytes(done.data))["id"] == 7
    return done.data


def plain(data: Line, method: str) -> Line:
    """The plain answer, whose id is where it is said to be."""
    start = bytes(data).index(b'"id":7') + 5
    done = results.plain(results.Answer(data, start, start + 1), method)
    assert bytes(done.data[done.start : done.end]) == b"7"
    return done.data


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
    assert result_of(completed(answer(given), method)) == expected


@pytest.mark.parametrize("more", ["", ',"_meta":{}'])
def test_what_is_completed_stays_else_as_it_was_written(more: str) -> None:
    given = r'{"big":123456789012345678901234567890,"n":1.0E2,"s":"\ud800","z":null%s}'.replace("%s", more)
    done = bytes(completed(answer(given, ' ,"x" : 1'), "tools/call"))
    for text in (b'"big":123456789012345678901234567890', b'"n":1.0E2', rb'"s":"\ud800"', b'"x" : 1'):
        assert text in done
    assert result_of(done)["resultType"] == "complete"


@pytest.mark.parametrize(
    "data",
    [
        b'{"result":{"a":{"result":{}}},"jsonrpc":"2.0","id":7}',
        b'{"x":{"result":{"b":1}},"jsonrpc":"2.0","result":{"a":1},"id":7}',
        b' { "jsonrpc" : "2.0", "id":7, "result" : { } } ',
    ],
)
def test_the_outermost_result_is_the_one_that_is_completed(data: bytes) -> None:
    before = json.loads(data)
    after = json.loads(bytes(completed(data, "tools/call")))
    assert after["result"].pop("resultType") == "complete"
    assert after["result"].pop("_meta") == META
    assert after == before


@pytest.mark.parametrize("shape", ["{%s}", '{"content":"%s"}', '{"resultType":"task","content":"%s"}'])
def test_a_large_result_gets_what_can_stand_in_front(shape: str) -> None:
    filling = " " * 70_000 if shape == "{%s}" else "x" * 70_000
    result = result_of(completed(answer(shape.replace("%s", filling)), "tools/list"))
    assert result["resultType"] == ("task" if "task" in shape else "complete")
    assert result["cacheScope"] == "private"


@pytest.mark.parametrize("size", [70_000, 2_000_000])
def test_a_large_result_with_its_id_behind_it_is_found_again(size: int) -> None:
    given = memoryview(b'{"result":{"a":"' + b"x" * size + b'"},"jsonrpc":"2.0","id":7}')
    found = result_of(completed(given, "tools/call"))
    assert found["resultType"] == "complete"
    assert found["a"] == "x" * size


def test_a_large_list_that_says_it_is_no_longer_fresh_is_read_though_only_a_view_of_it_is_at_hand() -> None:
    given = memoryview(b'{"ttlMs":null,"a":"' + b"x" * 70_000 + b'","resultType":"task","_meta":{}}')
    line = memoryview(b'{"jsonrpc":"2.0" ,"id":7 ,"result":' + bytes(given) + b' ,"x":1}')
    found = result_of(completed(line, "tools/list"))
    assert (found["resultType"], found["ttlMs"]) == ("task", 0)


def test_a_large_wish_for_input_is_seen_though_only_a_view_of_it_is_at_hand() -> None:
    line = memoryview(b'{"id":7,"result":{"a":"' + b"x" * 600_000 + b'","resultType":"input_required"}}')
    wish = results.wants_input(line)
    assert wish is not None
    assert wish["resultType"] == "input_required"


def test_a_result_that_is_no_object_passes() -> None:
    assert completed(answer("[1]"), "tools/call") == answer("[1]")
    assert plain(answer("[1]"), "tools/call") == answer("[1]")
    large = answer('{"resultType":"complete","x":"%s"}' % ("x" * 70_000))
    assert plain(large, "tools/call") is large


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
        ("tools/call", {"resultType": "complete"}, {}),
        (
            "tools/call",
            {"a": {"resultType": "complete"}, "resultType": "complete"},
            {"a": {"resultType": "complete"}},
        ),
        (
            "tools/call",
            {"a": 1, "resultType": "complete", "b": 'x"resultType":1'},
            {"a": 1, "b": 'x"resultType":1'},
        ),
    ],
)
def test_a_client_with_a_session_sees_nothing_of_this_revision(method: str, given: Any, left: Any) -> None:
    assert result_of(plain(answer(json.dumps(given)), method)) == left


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


@pytest.mark.parametrize(
    ("data", "left"),
    [
        (b'{"a":1, "m" : {"x":"\xc3\xa4"} , "b":2}', b'{"a":1, "b":2}'),
        (b'{"a":1 , "m":{"x":"\xc3\xa4"}}', b'{"a":1 }'),
        (b'{"m":{"x":"\xc3\xa4"}}', b"{}"),
        (b'{"m":{"x":"\xc3\xa4"},"n":{"m":1}}', None),
        (b'{"m":{"x":1}}', None),
        (b'{"a":"m"}', None),
        (b'{"\\u006d":{"x":"\xc3\xa4"}}', None),
    ],
)
def test_the_only_member_of_a_name_is_taken_out_without_reading_the_rest(
    data: bytes, left: bytes | None
) -> None:
    assert members.without(data, "m", {"x": "ä"}) == left


@pytest.mark.parametrize(
    ("data", "done"),
    [
        (b'{"p" : { "a":1}}', b'{"p" : {"n":0, "a":1}}'),
        (b'{"p":{ }}', None),
        (b'{"p":1}', None),
        (b'{"p":{"p":1}}', None),
        (b"{}", None),
    ],
)
def test_members_are_put_in_front_of_those_of_the_only_object_of_a_name(
    data: bytes, done: bytes | None
) -> None:
    assert members.in_front(data, "p", b'"n":0') == done
