"""`key=value` words of a command line as the arguments that a tool's input schema asks for."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcpsrv.core.errors import UsageError

Json = dict[str, Any]
_WORD: Final = re.compile(r"^(?P<key>[^=]+?)(?P<sign>:?=)(?P<value>.*)$", re.DOTALL)
_MAX_DEPTH: Final = 8
# What is tried first, so that 5 becomes a number where both a number and a string would do.
_ORDER: Final = ("null", "boolean", "integer", "number", "object", "array", "string")


def parse(words: Iterable[str], schema: Mapping[str, Any], base: Mapping[str, Any] | None = None) -> Json:
    """The arguments: those of `base`, then the words over them.

    `key=value` is typed by the schema, `key:=value` is JSON as it stands; a repeated key makes a list where
    the schema has one.

    Raises:
        UsageError: naming the argument that is unknown, missing, or of another type, and what is allowed.

    """
    made: Json = dict(base or {})
    given: set[str] = set()
    for word in words:
        found = _WORD.match(word)
        if not found:
            raise UsageError(f"{word!r} is no argument: write key=value, or key:=JSON")
        key, value = found["key"], found["value"]
        wanted = _property(schema, key)
        if found["sign"] == ":=":
            made[key] = _json(value, key)
        elif "array" in _types(wanted, schema) and not value.lstrip().startswith("["):
            item = _typed(value, _items(wanted, schema), schema, key)
            made[key] = [*(made[key] if key in given else ()), item]
        else:
            made[key] = _typed(value, wanted, schema, key)
        given.add(key)
    _check_missing(made, schema)
    return made


def _property(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    if key in known:
        return known[key] if isinstance(known[key], dict) else {}
    if known and schema.get("additionalProperties") is not True:
        raise UsageError(f"the tool has no argument {key!r}: it takes {', '.join(known)}")
    extra = schema.get("additionalProperties")
    return extra if isinstance(extra, dict) else {}


def _check_missing(made: Json, schema: Mapping[str, Any]) -> None:
    required = schema.get("required")
    missing = [key for key in required if key not in made] if isinstance(required, list) else []
    if missing:
        raise UsageError(
            f"the tool needs {', '.join(missing)}: add {' '.join(f'{key}=…' for key in missing)}"
        )


def _resolved(wanted: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema behind a chain of local references."""
    for _ in range(_MAX_DEPTH):
        reference = wanted.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return wanted
        found: Any = root
        for part in reference[2:].split("/"):
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        wanted = found if isinstance(found, dict) else {}
    return {}


def _branches(wanted: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> list[Mapping[str, Any]]:
    """The schema itself, or the alternatives that it names."""
    wanted = _resolved(wanted, root)
    options = wanted.get("anyOf") or wanted.get("oneOf")
    if not isinstance(options, list) or depth >= _MAX_DEPTH:
        return [wanted]
    return [b for option in options if isinstance(option, dict) for b in _branches(option, root, depth + 1)]


def _types(wanted: Mapping[str, Any], root: Mapping[str, Any]) -> set[str]:
    """The JSON types that are allowed; empty: any."""
    return {kind for branch in _branches(wanted, root) for kind in _own_types(branch)}


def _own_types(branch: Mapping[str, Any]) -> list[str]:
    told = branch.get("type")
    if isinstance(told, list):
        return [kind for kind in told if kind in _ORDER]
    if told in _ORDER:
        return [str(told)]
    return sorted({_kind(value) for value in branch.get("enum") or ()})


def _kind(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _items(wanted: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    lists = (branch for branch in _branches(wanted, root) if "array" in _own_types(branch))
    items = next(lists, {}).get("items")
    return items if isinstance(items, dict) else {}


def _typed(text: str, wanted: Mapping[str, Any], root: Mapping[str, Any], key: str) -> Any:
    types = _types(wanted, root) or {"string"}
    for kind in (kind for kind in _ORDER if kind in types):
        try:
            value = _read(text, kind)
        except ValueError:
            continue
        return _chosen(value, wanted, root, key)
    raise UsageError(f"{key} must be {_or(sorted(types))}, {text!r} is none")


def _chosen(value: Any, wanted: Mapping[str, Any], root: Mapping[str, Any], key: str) -> Any:
    """The value, if the schema's list of allowed ones has it."""
    branches = _branches(wanted, root)
    if all("enum" in branch for branch in branches):
        allowed = [one for branch in branches for one in branch["enum"] or ()]
        if value not in allowed:
            raise UsageError(f"{key} must be {_or([str(one) for one in allowed])}, not {value!r}")
    return value


def _read(text: str, kind: str) -> Any:
    """The text as this JSON type. Raises ValueError if it is none."""
    if kind == "string":
        return text
    value = json.loads(text)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(text)
    if kind == "number" and _kind(value) == "integer":
        return value
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if _kind(value) != kind:
        raise ValueError(text)
    return value


def _json(text: str, key: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"{key}:= must be followed by JSON: {error}; use {key}= for plain text") from error


def _or(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
