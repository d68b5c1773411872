"""Members of an object in JSON text: left out, set, and the rest as it was written."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from mcp_sidecar.core import jsontext

_DECODER = json.JSONDecoder()
_SPACE = " \t\n\r"
_COLON = re.compile(rb"\s*:\s*")
_OBJECT = re.compile(rb"\s*:\s*\{(?!\s*\})")
_COMMA_AFTER = re.compile(rb"\s*,\s*")
_COMMA_BEFORE = re.compile(rb",\s*$")


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


def without(data: bytes, name: str, value: Any) -> bytes | None:
    """The valid document without the one member of this name and value that it has anywhere.

    Reads nothing but that member. None when the name stands in it twice, or is spelt in another way.
    """
    key = b'"%b"' % name.encode()
    start = data.find(key)
    if start < 0 or data.find(key, start + 1) >= 0:
        return None
    found = _COLON.match(data, start + len(key))
    if found is None:
        return None
    text = data[found.end() :].decode()
    read, length = _DECODER.raw_decode(text)
    if read != value:
        return None
    end = found.end() + len(text[:length].encode())
    after = _COMMA_AFTER.match(data, end)
    if after is not None:
        return data[:start] + data[after.end() :]
    before = _COMMA_BEFORE.search(data[:start])
    return (data[:start] if before is None else data[: before.start()]) + data[end:]


def in_front(data: bytes, name: str, added: bytes) -> bytes | None:
    """The document with members put in front of those of the object that is the value of this one name.

    None when the name stands in it twice, or is spelt in another way, or the object is empty.
    """
    key = b'"%b"' % name.encode()
    start = data.find(key)
    if start < 0 or data.find(key, start + 1) >= 0:
        return None
    found = _OBJECT.match(data, start + len(key))
    return None if found is None else b"%b%b,%b" % (data[: found.end()], added, data[found.end() :])


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
