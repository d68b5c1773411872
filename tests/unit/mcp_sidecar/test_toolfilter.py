"""Which tools clients may see and call."""

import json
from typing import Any

import pytest

from mcp_sidecar.core import frames, jsontext
from mcp_sidecar.core.toolfilter import ToolFilter
from mcp_sidecar.settings import SettingsError, _globs


@pytest.mark.parametrize(
    ("allow", "deny", "let", "kept_out"),
    [
        ((), (), ["anything", ""], [None, 7, ["a"]]),
        (("read_*",), (), ["read_file", "read_"], ["write_file", "Read_file", "xread_file"]),
        ((), ("delete*", "rm"), ["delet", "r", "rmdir"], ["delete", "delete_all", "rm"]),
        (("*",), ("*",), [], ["x"]),
        (("a", "b?"), ("b2",), ["a", "b1"], ["b2", "b", "ab", "c"]),
        (("db.[rq]*",), (), ["db.read", "db.query"], ["db.write", "dbxread"]),
        (("a",), (), ["a"], ["a\n", "a ", "a\x00", "A"]),
    ],
)
def test_globs_choose_the_tools_and_deny_wins(
    allow: tuple[str, ...], deny: tuple[str, ...], let: list[Any], kept_out: list[Any]
) -> None:
    chosen = ToolFilter(allow, deny)
    assert [name for name in let if not chosen.lets(name)] == []
    assert [name for name in kept_out if chosen.lets(name)] == []


def refusal(chosen: ToolFilter, frame: frames.Frame) -> str | None:
    try:
        chosen.admitted(frame)
    except frames.FrameError as error:
        return str(error)
    return None


def call(name: str) -> frames.Frame:
    params = {"name": name, "arguments": {}}
    return frames.parse(
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    )


def test_a_call_of_a_tool_that_is_kept_out_reads_like_one_that_does_not_exist() -> None:
    chosen = ToolFilter(("read",), ())
    assert refusal(chosen, call("read")) is None
    assert refusal(chosen, call("write")) == "Unknown tool: write"
    assert len(refusal(chosen, call("x" * 10_000)) or "") < 300
    nameless = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"NAME":"read"}}'
    assert refusal(chosen, frames.parse(nameless)) is not None
    assert refusal(chosen, frames.parse(b'{"jsonrpc":"2.0","id":1,"method":"prompts/get"}')) is None


def test_a_list_keeps_its_text_but_for_the_tools_that_are_kept_out() -> None:
    chosen = ToolFilter((), ("b*",))
    answer = (
        b'{"jsonrpc":"2.0","id":7,"result":{"x":1.0E2,"tools": [ {"name":"a", "n":1e400} ,{"name":"b"},'
        b'{"name":"b2"},{"name":"\\u00e9","s":"\\ud800"},{"no":"name"},null],"nextCursor":"c"}}'
    )
    assert chosen.answer(answer) == (
        b'{"jsonrpc":"2.0","id":7,"result":{"x":1.0E2,"tools": '
        b'[{"name":"a", "n":1e400},{"name":"\\u00e9","s":"\\ud800"}],"nextCursor":"c"}}'
    )


@pytest.mark.parametrize("result", [b"null", b"[]", b'{"tools":null}', b'{"tools":{}}', b"{}"])
def test_an_answer_without_a_list_stays_as_it_is(result: bytes) -> None:
    answer = b'{"jsonrpc":"2.0","id":7,"result":%b}' % result
    assert ToolFilter(("a",), ()).answer(answer) == answer


def test_an_empty_list_stays_empty() -> None:
    answer = b'{"jsonrpc":"2.0","id":7,"result":{"tools":[ ]}}'
    assert json.loads(ToolFilter(("a",), ()).answer(answer))["result"]["tools"] == []


def test_members_and_items_are_found_as_they_were_written() -> None:
    text = b' { "a" : [1 , {"b":[2]}, "]" ] , "A": {"a":0,"a":1} }'
    assert jsontext.keys(text) == ["a", "A"]
    assert jsontext.keys(text, "A") == ["a", "a"]
    assert jsontext.items(text, "a") == [b"1", b'{"b":[2]}', b'"]"']


@pytest.mark.parametrize("text", ["{", '"a"', "[1]", '{"a": 1}'])
def test_globs_that_are_no_list_are_refused_by_name(text: str) -> None:
    assert _globs({"X": '["a*"]'}, "X") == ("a*",)
    assert _globs({}, "X") == ()
    with pytest.raises(SettingsError, match="X="):
        _globs({"X": text}, "X")
