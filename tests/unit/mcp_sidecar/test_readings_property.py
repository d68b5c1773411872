"""That nothing which an exact look refuses gets past the quick one."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcp_sidecar.core import frames, readings

TOP = ("jsonrpc", "id", "method", "params", "result", "error")
PARAMS = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
    "logging/setLevel": "level",
    "notifications/cancelled": "requestId",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
METHODS = st.sampled_from([*PARAMS, "ping", "vendor/x"])
LEAF = st.sampled_from(
    ["1", "null", '"a"', '":"', '"\\u0069d"', "[]", "{}", '{"id":1,"name":2}', '[{"x":1}]']
)


@st.composite
def spelled(draw: st.DrawFn, name: str) -> str:
    """A name as it is, in another case, or with a letter escaped."""
    how = draw(st.sampled_from(["as it is", "as it is", "as it is", "case", "escape", "fold"]))
    if how == "case":
        name = draw(st.sampled_from([name.upper(), name.title()]))
    if how == "fold":  # letters that become `s` and `k` when case does not count
        name = name.replace("s", "\u017f").replace("k", "\u212a")
    if how != "escape":
        return json.dumps(name, ensure_ascii=False)
    at = draw(st.integers(0, len(name) - 1))
    return f'"{name[:at]}\\u{ord(name[at]):04X}{name[at + 1 :]}"'


def objects(names: st.SearchStrategy[str], values: dict[str, st.SearchStrategy[str]]) -> Any:
    """Texts of objects with members of these names, some of them several times."""

    @st.composite
    def made(draw: st.DrawFn) -> str:
        members = [
            draw(spelled(name)) + draw(st.sampled_from([":", " : "])) + draw(values.get(name, LEAF))
            for name in draw(st.lists(names, max_size=4))
        ]
        return "{" + ",".join(members) + "}"

    return made()


META = objects(st.sampled_from(["progressToken", "x"]), {})
ARGUMENTS = objects(st.sampled_from(["name", "id", "params", "x"]), {})
PARAMETERS = objects(
    st.sampled_from(["_meta", "arguments", "x", *sorted(set(PARAMS.values()))]),
    {"_meta": META | LEAF, "arguments": ARGUMENTS | LEAF},
)
VALUES = {
    "jsonrpc": st.just('"2.0"'),
    "id": st.sampled_from(["1", "2", '"a:b"']),
    "method": METHODS.map(json.dumps),
    "params": PARAMETERS | LEAF,
}


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Frames of every kind, with members that stand twice."""
    needed = draw(st.sampled_from([["id", "method", "params"], ["method", "params"], ["id", "result"]]))
    more = draw(st.lists(st.sampled_from(TOP), max_size=1))
    order = draw(st.permutations(["jsonrpc", *needed, *more]))
    return "{" + ",".join(f"{draw(spelled(name))}:{draw(VALUES.get(name, LEAF))}" for name in order) + "}"


class Members(list[tuple[str, Any]]):
    """An object with all that it was written with."""

    def last(self, name: str) -> Any:
        return next((value for found, value in reversed(self) if found == name), None)


def equivocal(value: Any, words: tuple[str, ...]) -> bool:
    """Whether one of the words is written otherwise in an object, or several times."""
    folded = {word.casefold() for word in words}
    found = [name for name, _ in value if name.casefold() in folded] if isinstance(value, Members) else []
    return len(set(found)) < len(found) or not set(found) <= set(words)


def has_two_readings(text: str) -> bool:
    """What the quick look stands for, without any shortcut."""
    message = json.loads(text, object_pairs_hook=Members)
    if equivocal(message, TOP):
        return True
    method, params = message.last("method"), message.last("params")
    if method is None or not isinstance(params, Members):  # an answer's params are nobody's business
        return False
    own = (PARAMS[method],) if method in PARAMS else ()
    return equivocal(params, ("_meta", *own)) or equivocal(params.last("_meta"), ("progressToken",))


@given(texts())
def test_the_quick_look_refuses_what_an_exact_one_does_and_nothing_else(text: str) -> None:
    data = text.encode()
    try:
        frame = frames.parse(data)
    except frames.FrameError:
        return
    try:
        readings.parse(data)
        refused = False
    except frames.FrameError as error:
        refused = "ambiguous" in str(error)
    # Answers have no params: one that has some may be refused for them.
    assert refused == has_two_readings(text) or (refused and frame.kind == frames.RESPONSE)
