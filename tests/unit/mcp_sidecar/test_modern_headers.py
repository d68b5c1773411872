from typing import Any

import pytest

from mcp_sidecar.core.modern import headers
from mcp_sidecar.core.modern.errors import RejectionError
from mcp_sidecar.core.modern.headers import Param


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def mark(name: Any, kind: Any = "string", **more: Any) -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": name, **more}


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (None, None),
        (b"plain", "plain"),
        (b"=?base64?SGVsbG8=?=", "Hello"),
        (b"=?base64?SGVsbG8?=", None),
        (b"=?base64?SGVs!!!bG8=?=", None),
        (b"=?base64?SGVsbG9=?=", None),
        (b"=?base64?/w==?=", None),
        (b"=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        (b"=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
    ],
)
def test_a_wrapped_value_means_what_is_in_it_or_nothing(value: bytes | None, meant: str | None) -> None:
    assert headers.decoded(value) == meant


@pytest.mark.parametrize(
    ("input_schema", "params"),
    [
        (schema(a=mark("Region")), (Param(("a",), "Mcp-Param-Region", False),)),
        (schema(a=schema(b=mark("N", "integer"))), (Param(("a", "b"), "Mcp-Param-N", True),)),
        (schema(a={"type": "string"}), ()),
        (schema(a=mark("bad name")), ()),
        (schema(a=mark("")), ()),
        (schema(a=mark(7)), ()),
        (schema(a=mark("N", "number")), ()),
        (schema(a=mark("N", ["string", "null"])), ()),
        (schema(a=mark("N"), b=mark("n")), ()),
        (schema(a=mark("N"), b={"items": mark("M")}), ()),
        (schema(a=mark("N"), b={"anyOf": [mark("M")]}), ()),
        (schema(a=mark("N")) | {"$defs": {"x": mark("M")}}, ()),
        (schema(a=mark("N"), b={"default": mark("M")}), (Param(("a",), "Mcp-Param-N", False),)),
        (mark("Root"), ()),
        ("odd", ()),
        (None, ()),
    ],
)
def test_only_what_has_one_place_and_one_spelling_is_repeated(
    input_schema: Any, params: tuple[Param, ...]
) -> None:
    assert headers.marked(input_schema) == params


def test_tools_that_repeat_nothing_are_not_kept() -> None:
    tools = [{"name": "a", "inputSchema": schema(x=mark("X"))}, {"name": "b"}, "odd", {"inputSchema": {}}]
    assert list(headers.tool_params(tools)) == ["a"]


PARAMS = (Param(("a", "b"), "Mcp-Param-Text", False), Param(("n",), "Mcp-Param-Number", True))


@pytest.mark.parametrize(
    ("arguments", "given", "words"),
    [
        ({}, {}, None),
        (None, {}, None),
        ({"a": {"b": None}}, {}, None),
        ({"a": {"b": "x"}}, {b"mcp-param-text": b"x"}, None),
        ({"a": {"b": "x"}}, {b"mcp-param-text": b"=?base64?eA==?="}, None),
        ({"a": {"b": True}}, {b"mcp-param-text": b"true"}, None),
        ({"n": 42}, {b"mcp-param-number": b"42.0"}, None),
        ({"n": 42.0}, {b"mcp-param-number": b"42"}, None),
        ({"n": 9007199254740993}, {b"mcp-param-number": b"9007199254740993"}, None),
        ({"a": {"b": ["x"]}}, {}, None),
        ({"n": 42}, {b"mcp-param-number": b"42.5"}, "is not what the body has (params.arguments.n)"),
        ({"n": 42}, {b"mcp-param-number": b"4.2e1"}, "is not what the body has"),
        ({"n": 10**500}, {b"mcp-param-number": b"1"}, "is not there"),
        ({"a": {"b": "x"}}, {}, "Mcp-Param-Text is missing (params.arguments.a.b)"),
        ({"a": {"b": "x"}}, {b"mcp-param-text": b"y"}, "is not what the body has"),
        ({"a": {"b": "x"}}, {b"mcp-param-text": b"x\nx"}, "is not what the body has"),
        ({"a": {"b": "x"}}, {b"mcp-param-text": b"=?base64?eA?="}, "is not what the body has"),
        ({}, {b"mcp-param-text": b"x"}, "repeats an argument that is not there"),
        ({"a": "flat"}, {b"mcp-param-text": b"x"}, "repeats an argument that is not there"),
    ],
)
def test_header_and_argument_must_say_the_same(
    arguments: Any, given: dict[bytes, bytes], words: str | None
) -> None:
    if words is None:
        headers.check(PARAMS, arguments, given)
        return
    with pytest.raises(RejectionError) as told:
        headers.check(PARAMS, arguments, given)
    assert words in str(told.value)
    assert told.value.code == -32020
