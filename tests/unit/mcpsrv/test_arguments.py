"""`key=value` words as the arguments that a tool's schema asks for."""

from typing import Any

import pytest

from mcpsrv.core import arguments
from mcpsrv.core.errors import UsageError

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "paths": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "options": {"type": "object"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "both": {"type": ["number", "string"]},
        "level": {"enum": ["low", "high"]},
        "size": {"$ref": "#/$defs/Size"},
        "free": {},
    },
    "$defs": {"Size": {"type": "integer", "enum": [1, 2]}},
}


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (["text=5"], {"text": "5"}),
        (["text="], {"text": ""}),
        (["text=a=b"], {"text": "a=b"}),
        (["text=two\nlines"], {"text": "two\nlines"}),
        (["count=5"], {"count": 5}),
        (["count=5.0"], {"count": 5}),
        (["ratio=5"], {"ratio": 5}),
        (["ratio=0.5"], {"ratio": 0.5}),
        (["deep=true"], {"deep": True}),
        (["paths=a", "paths=b"], {"paths": ["a", "b"]}),
        (['paths=["a","b"]'], {"paths": ["a", "b"]}),
        (["sizes=1", "sizes=2"], {"sizes": [1, 2]}),
        (['options={"a":1}'], {"options": {"a": 1}}),
        (["maybe=5"], {"maybe": 5}),
        (["maybe=null"], {"maybe": None}),
        (["both=5"], {"both": 5}),
        (["both=five"], {"both": "five"}),
        (["level=high"], {"level": "high"}),
        (["size=2"], {"size": 2}),
        (["free=x"], {"free": "x"}),
        (["text:=5"], {"text": 5}),
        (['free:=[1, {"a": null}]'], {"free": [1, {"a": None}]}),
    ],
)
def test_a_word_gets_the_type_that_the_schema_asks_for(words: list[str], made: dict[str, Any]) -> None:
    assert arguments.parse(words, SCHEMA) == made


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["count=five"], "count must be integer, 'five' is none"),
        (["count=5.5"], "count must be integer, '5.5' is none"),
        (["ratio=NaN"], "ratio must be number, 'NaN' is none"),
        (["deep=yes"], "deep must be boolean, 'yes' is none"),
        (["maybe=x"], "maybe must be integer or null, 'x' is none"),
        (["level=medium"], "level must be low or high, not 'medium'"),
        (["size=3"], "size must be 1 or 2, not 3"),
        (["sizes=a"], "sizes must be integer, 'a' is none"),
        (["nope=1"], "the tool has no argument 'nope': it takes text, count,"),
        (["text"], "'text' is no argument: write key=value"),
        (["free:={"], "free:= must be followed by JSON"),
    ],
)
def test_a_word_that_does_not_fit_is_refused_naming_the_argument(words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        arguments.parse(words, SCHEMA)
    assert message in str(caught.value)


def test_what_is_required_and_missing_is_told_with_the_words_to_add() -> None:
    schema = {**SCHEMA, "required": ["text", "count"]}
    with pytest.raises(UsageError, match="the tool needs text, count: add text=… count=…"):
        arguments.parse([], schema)
    assert arguments.parse(["count=1"], schema, {"text": "a"}) == {"text": "a", "count": 1}


@pytest.mark.parametrize(
    "schema", [{}, {"type": "object"}, {"properties": None}, {"properties": {"a": True}}]
)
def test_a_schema_that_says_nothing_lets_everything_through_as_text(schema: dict[str, Any]) -> None:
    assert arguments.parse(["a=1"], schema) == {"a": "1"}


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema = {"properties": {"a": {"$ref": "#/properties/a"}}}
    assert arguments.parse(["a=1"], schema) == {"a": "1"}
