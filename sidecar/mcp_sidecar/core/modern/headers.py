"""Values of requests that are repeated in HTTP headers, so that proxies can route by them.

`Mcp-Param-NAME` repeats the argument whose property in the tool's input schema has `x-mcp-header: NAME`. Such
a property must be reachable from the root through `properties` alone, be of a type that has one spelling,
and its name must be unique; a schema that breaks this repeats nothing.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_sidecar.core.modern.errors import HEADER_MISMATCH, RejectionError

_MARK = "x-mcp-header"
_TYPES = frozenset({"string", "integer", "boolean"})
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_WRAPPED = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_DECIMAL = re.compile(r"(-?\d+)(?:\.0+)?")
_SINGLE = (
    "items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames", "unevaluatedProperties",
    "not", "if", "then", "else", "contentSchema",
)  # fmt: skip
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_MAPS = ("patternProperties", "dependentSchemas", "$defs", "definitions")
_MAX_DIGITS = 400


@dataclass(frozen=True, slots=True)
class Param:
    """An argument that a header repeats."""

    path: tuple[str, ...]
    header: str
    """The header's name as it is shown."""
    integer: bool


class _InvalidError(Exception):
    """The schema marks something that cannot be repeated."""


def text(value: bytes | None) -> str | None:
    """A header's value."""
    return None if value is None else value.decode("latin-1")


def decoded(value: bytes | None) -> str | None:
    """A header's value out of its `=?base64?…?=`, if it has one; None when that is malformed, or for None."""
    plain = text(value)
    found = _WRAPPED.fullmatch(plain) if plain is not None else None
    if found is None:
        return plain
    try:
        raw = base64.b64decode(found[1].encode("latin-1"), validate=True)
        # Other spellings of the same bytes are refused: who compares texts would take them for different.
        return raw.decode() if base64.b64encode(raw).decode() == found[1] else None
    except (binascii.Error, UnicodeDecodeError):
        return None


def tool_params(tools: Iterable[Any]) -> dict[str, tuple[Param, ...]]:
    """The repeated arguments of each tool that has any, by its name."""
    found: dict[str, tuple[Param, ...]] = {}
    for tool in tools:
        name = tool.get("name") if isinstance(tool, Mapping) else None
        if isinstance(name, str) and (params := marked(tool.get("inputSchema"))):
            found[name] = params
    return found


def marked(schema: Any) -> tuple[Param, ...]:
    """The arguments that a schema wants repeated; none when it wants what cannot be."""
    try:
        params = tuple(_param(path, node) for path, node in _positions(schema) if _MARK in node)
    except _InvalidError:
        return ()
    names = {param.header.lower() for param in params}
    return params if len(names) == len(params) else ()


def _param(path: tuple[str, ...] | None, node: Mapping[str, Any]) -> Param:
    name, kind = node[_MARK], node.get("type")
    if not path or not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise _InvalidError
    if not isinstance(kind, str) or kind not in _TYPES:
        raise _InvalidError
    return Param(path, f"Mcp-Param-{name}", kind == "integer")


def _positions(root: Any) -> Iterator[tuple[tuple[str, ...] | None, Mapping[str, Any]]]:
    """Every schema within a schema; the path is None where more than `properties` leads to it."""
    left: list[tuple[tuple[str, ...] | None, Any]] = [((), root)]
    while left:
        path, node = left.pop()
        if not isinstance(node, Mapping):
            continue
        yield path, node
        properties = node.get("properties")
        for name, sub in properties.items() if isinstance(properties, Mapping) else ():
            left.append((None if path is None else (*path, name), sub))
        left += [(None, sub) for sub in _elsewhere(node)]


def _elsewhere(node: Mapping[str, Any]) -> Iterator[Any]:
    yield from (node[word] for word in _SINGLE if word in node)
    for word in _LISTS:
        listed = node.get(word)
        yield from listed if isinstance(listed, list) else ()
    for word in _MAPS:
        named = node.get(word)
        yield from named.values() if isinstance(named, Mapping) else ()


def check(params: Sequence[Param], arguments: Any, given: Mapping[bytes, bytes]) -> None:
    """Hold the headers of a `tools/call` against its arguments.

    Raises:
        RejectionError: a header is missing, malformed, or says something else.

    """
    for param in params:
        raw = given.get(param.header.lower().encode())
        value = _at(arguments, param.path)
        shown = _shown(value)
        if shown is None and raw is not None:
            raise _mismatch(param, "repeats an argument that is not there")
        if shown is not None and raw is None:
            raise _mismatch(param, "is missing")
        if shown is not None and not _same(param, value, shown, decoded(raw)):
            raise _mismatch(param, "is not what the body has")


def given(params: Sequence[Param], arguments: Any) -> dict[str, str]:
    """The headers that repeat the arguments of a `tools/call`, as its sender writes them."""
    shown = {param.header: _shown(_at(arguments, param.path)) for param in params}
    return {name: encoded(value) for name, value in shown.items() if value is not None}


def encoded(value: str) -> str:
    """A value as a header can have it: as it is, or as `=?base64?…?=`."""
    plain = value.isascii() and value.isprintable() and value.strip() == value
    if plain and not _WRAPPED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def _mismatch(param: Param, what: str) -> RejectionError:
    where = ".".join(param.path)
    return RejectionError(
        HEADER_MISMATCH, f"Header mismatch: {param.header} {what} (params.arguments.{where})"
    )


def _at(arguments: Any, path: tuple[str, ...]) -> Any:
    node = arguments
    for key in path:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node


def _shown(value: Any) -> str | None:
    """A value as a header spells it; None for what no header can."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > 4 * _MAX_DIGITS:
        return None
    return str(value) if isinstance(value, str | int | float) else None


def _same(param: Param, value: Any, shown: str, said: str | None) -> bool:
    if said is None:
        return False
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if param.integer and whole and not isinstance(value, bool) and len(said) <= _MAX_DIGITS:
        number = _DECIMAL.fullmatch(said)
        return number is not None and int(number[1]) == int(value)
    return said == shown
