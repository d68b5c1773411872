"""Members of an object in JSON text: left out, set, and the rest as it was written."""

import json
from collections.abc import Collection, Iterator, Mapping

from mcp_sidecar.core import jsontext

_DECODER = json.JSONDecoder()
_SPACE = " \t\n\r"


def edited(
    data: bytes, path: tuple[str, ...], *, drop: Collection[str] = (), put: Mapping[str, bytes] | None = None
) -> bytes:
    """The valid document with the members of the object at `path` changed.

    Args:
        data: UTF-8 JSON.
        path: names of members, from the outermost object on.
        drop: members to leave out, present or not.
        put: members to set, as JSON text.

    Raises:
        KeyError: there is nothing at `path`, or it is no object.

    """
    put = put or {}
    text = data.decode()
    start, end = jsontext.span(text, *path)
    if text[start] != "{":
        raise KeyError(path)
    kept = [whole for name, whole in _members(text, start) if name not in put and name not in drop]
    added = [f"{json.dumps(name)}:{raw.decode()}" for name, raw in put.items()]
    return f"{text[:start]}{{{','.join((*kept, *added))}}}{text[end:]}".encode()


def value(data: bytes, *path: str) -> bytes:
    """The text of the value at `path` of a valid document.

    Raises:
        KeyError: there is none.

    """
    start, end = jsontext.byte_span(data, *path)
    return data[start:end]


def _members(text: str, start: int) -> Iterator[tuple[str, str]]:
    """Name and whole text of each member of the object that begins at `start`."""
    position = _skip(text, start + 1)
    while text[position] == '"':
        begin = position
        name, position = _DECODER.raw_decode(text, position)
        _, position = _DECODER.raw_decode(text, _skip(text, _skip(text, position) + 1))
        yield name, text[begin:position]
        position = _skip(text, position)
        if text[position] == ",":
            position = _skip(text, position + 1)


def _skip(text: str, position: int) -> int:
    while text[position] in _SPACE:
        position += 1
    return position
