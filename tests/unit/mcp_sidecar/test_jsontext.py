import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_sidecar.core import jsontext

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: (
        st.lists(children) | st.dictionaries(st.text() | st.sampled_from(["id", "method"]), children)
    ),
    max_leaves=8,
)
IDS = st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def frames(draw: st.DrawFn) -> tuple[Any, bytes]:
    """A frame with its members in any order and spacing, and its id."""
    number = draw(IDS)
    members = draw(st.dictionaries(st.text() | st.sampled_from(["params", "result"]), VALUES, max_size=4))
    message = {
        "jsonrpc": "2.0",
        "id": number,
        "method": draw(st.text(max_size=5)),
        **members,
    }
    message["id"] = number  # a member may have taken its place
    keys = draw(st.permutations(list(message)))
    indent = draw(st.sampled_from([None, 1]))
    separators = draw(st.sampled_from([(",", ":"), (" , ", " : ")]))
    shuffled = {key: message[key] for key in keys}
    text = json.dumps(shuffled, indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    return number, text.encode("utf-8", "replace")


@given(frames())
def test_the_id_is_found_wherever_it_stands(case: tuple[Any, bytes]) -> None:
    number, data = case
    number = json.loads(data)["id"]
    start, end = jsontext.find_id(data, number)
    assert json.loads(data[start:end]) == number
    changed = json.loads(data[:start] + b'"new"' + data[end:])
    assert changed == {**json.loads(data), "id": "new"}


@pytest.mark.parametrize(
    ("data", "value", "raw"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"m"}', 7, b"7"),
        (b'{"method":"m","params":{"id":1},"jsonrpc":"2.0","id":"a"}', "a", b'"a"'),
        (b'{"result":{"id":5},"id":6}', 6, b"6"),
        (b'{"jsonrpc":"2.0","id":60,"result":{}}', 60, b"60"),
        (b'{"jsonrpc":"2.0","id":6,"result":{},"id":7}', 7, b"7"),
        (b'{"result":{},"jsonrpc":"2.0","id":61}', 61, b"61"),
        (b'{"result":{"id":5,"jsonrpc":"2.0","id":6},"id":6}', 6, b"6"),
        (b'{"id":1,"result":{},"id":2}', 2, b"2"),
        (b'{"\\u0069d":9,"result":{}}', 9, b"9"),
        (b'{"id":1.0,"method":"m"}', 1.0, b"1.0"),
        (b'{"id":-0,"method":"m"}', 0, b"-0"),
        (b'{"x":",\\"id\\":1}","id":"\\u00e9"}', "é", b'"\\u00e9"'),
    ],
)
def test_the_id_that_counts_is_found_as_it_was_written(data: bytes, value: Any, raw: bytes) -> None:
    start, end = jsontext.find_id(data, value)
    assert data[start:end] == raw


def test_a_value_is_replaced_and_all_else_stays_as_it_was_written() -> None:
    data = '{"params": {"é": 1E400, "_meta": {"progressToken" : "t", "x": [1.0, 1.0]}}, "a":\t2.50}'.encode()
    changed = jsontext.replace(data, b"17", "params", "_meta", "progressToken")
    assert changed == data.replace(b'"t"', b"17")


def test_a_missing_member_is_an_error() -> None:
    with pytest.raises(KeyError):
        jsontext.span('{"a": {"b": 1}}', "a", "c")


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"nonsense", b"[" * 100_000, b'{"a":1}x'])
def test_what_is_not_json_is_refused(data: bytes) -> None:
    with pytest.raises(jsontext.JsonError):
        jsontext.loads(data)


def test_a_message_on_one_line_means_the_same() -> None:
    data = '{\r\n "a": "x\u2028y\u2029",\n "b": 1 }'.encode()
    flat = jsontext.one_line(data)
    assert len(flat.decode().splitlines()) == 1
    assert json.loads(flat) == json.loads(data)
    assert jsontext.one_line(flat) is flat


def test_a_text_of_too_many_values_is_refused_before_it_takes_memory() -> None:
    with pytest.raises(jsontext.JsonError, match="values"):
        jsontext.loads(b"[" + b"[]," * 600_000 + b"1]")
    assert len(jsontext.loads(b"[" + b"1," * 400_000 + b"1]")) == 400_001


@pytest.mark.parametrize(
    ("data", "valid"),
    [
        (b"", True),
        ("é漢😀".encode() * 100_000, True),
        (b"x" * 300_000 + b"\xff", False),
        (b"x" * 262_143 + "é".encode() + b"x", True),
        (b"x" * 10 + "é".encode()[:1], False),
        (b"x" * 262_143 + "é".encode()[:1], False),
    ],
)
def test_utf8_is_told_from_other_bytes_over_pieces(data: bytes, valid: bool) -> None:
    assert jsontext.is_utf8(data) is valid
    assert jsontext.is_utf8(memoryview(data)) is valid


@pytest.mark.parametrize(("value", "depth"), [(1, 0), ({}, 1), ([[]], 2), ({"a": [{"b": 1}]}, 3)])
def test_the_depth_of_a_value_is_that_of_its_containers(value: object, depth: int) -> None:
    assert jsontext.within_depth(value, depth)
    assert not depth or not jsontext.within_depth(value, depth - 1)
