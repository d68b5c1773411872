"""Tools under another name, title or description."""

import json
from typing import Any

import pytest

from mcp_sidecar.core import frames
from mcp_sidecar.core.overrides import Override, Overrides
from mcp_sidecar.core.toolfilter import ToolFilter
from mcp_sidecar.settings import SettingsError, _overrides


def renamed(*pairs: tuple[str, str]) -> Overrides:
    return Overrides(Override(old, rename=new) for old, new in pairs)


@pytest.mark.parametrize(
    ("pairs", "shown", "original"),
    [
        ((("a", "b"),), "b", "a"),
        ((("a", "b"),), "a", None),
        ((("a", "b"),), "c", "c"),
        ((("a", "b"), ("b", "a")), "a", "b"),
        ((("a", "b"), ("b", "c")), "b", "a"),
        ((("a", "b"), ("b", "c")), "a", None),
        ((("a", "a"),), "a", "a"),
        ((), 7, None),
        ((), None, None),
    ],
)
def test_clients_reach_a_tool_by_its_new_name_alone(
    pairs: tuple[tuple[str, str], ...], shown: Any, original: str | None
) -> None:
    assert renamed(*pairs).original(shown) == original


def call(name: str) -> frames.Frame:
    return frames.parse(
        b'{"jsonrpc":"2.0","method":"tools/call",'
        b'"params":{"arguments":{"name":"x", "n":1.0E2},"name":"%b"},"id":9}' % name.encode()
    )


def test_a_call_is_the_same_but_for_the_name_and_is_known_to_the_relay_by_the_clients_name() -> None:
    passed = ToolFilter((), (), [Override("an-original", rename="new")]).admitted(call("new"))
    assert passed.data == call("an-original").data
    assert (passed.params["name"], passed.raw_id) == ("new", b"9")


def test_filters_go_by_the_servers_names() -> None:
    chosen = ToolFilter(("a", "b"), ("b",), [Override("a", rename="x"), Override("b", rename="y")])
    assert chosen.admitted(call("x")).data == call("a").data
    for name in ("a", "b", "y"):
        with pytest.raises(frames.FrameError, match=f"Unknown tool: {name}"):
            chosen.admitted(call(name))


def test_an_override_of_a_tool_that_is_kept_out_takes_no_name() -> None:
    chosen = ToolFilter((), ("b",), [Override("b", rename="a")])
    assert chosen.admitted(call("a")).data == call("a").data
    assert [tool["name"] for tool in chosen.listed([{"name": "a"}])] == ["a"]


def test_a_list_shows_the_new_values_and_everything_else_as_it_was() -> None:
    overrides = [
        Override("a", rename="ä"),
        Override("b", title="B", description="new"),
        Override("d", rename="c"),
    ]
    chosen = ToolFilter((), (), overrides)
    tools = (
        b'[{"name":"a","n":1.0E2} ,{"description":"old","inputSchema":{"name":"a"},"name":"b"},'
        b'{"name":"c"},{"name":"d"},{"name":"e","x":1e400}]'
    )
    answer = b'{"jsonrpc":"2.0","id":7,"result":{"tools":%b,"nextCursor":"c"}}'
    assert chosen.answer(answer % tools) == answer % (
        b'[{"n":1.0E2,"name":"\\u00e4"},{"inputSchema":{"name":"a"},"name":"b","title":"B","description":"new"},'
        b'{"name":"c"},{"name":"e","x":1e400}]'
    ), "of two tools named c the overridden one is shown"
    visible = chosen.visible(json.loads(tools))
    assert [tool["name"] for tool in chosen.listed(visible)] == ["ä", "b", "c", "e"]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("a", "b"), None),
        (("a", "b", "other"), None),
        (("a", "b", "x"), "hidden: 'x'; choose another rename"),
        (("b",), "lacks or that spec.tools keeps out: 'a'"),
        (("b", "x"), "hidden: 'x'; choose another rename. spec.tools.overrides names tools"),
    ],
)
def test_what_does_not_fit_the_servers_tools_is_told_by_field_and_name(
    names: tuple[str, ...], told: str | None
) -> None:
    overrides = [Override("a", rename="x"), Override("b", title="B")]
    complaint = ToolFilter((), (), overrides).complaint(names)
    assert complaint == told if told is None else told in (complaint or "")


def test_a_long_complaint_names_the_first_few() -> None:
    complaint = renamed(*((f"tool-{n}", f"x{n}") for n in range(9))).complaint(frozenset())
    assert complaint is not None
    assert "'tool-4' and 4 more" in complaint


def test_overrides_come_as_a_list_or_are_refused_by_name() -> None:
    text = '[{"name":"a","rename":"b"},{"name":"c","title":"C","description":"d"}]'
    assert _overrides({"X": text}, "X") == (Override("a", "b"), Override("c", title="C", description="d"))
    assert _overrides({}, "X") == ()
    for wrong in ("{", '[{"rename":"b"}]', '[{"name":"a","x":1}]', "[1]"):
        with pytest.raises(SettingsError, match="X="):
            _overrides({"X": wrong}, "X")
