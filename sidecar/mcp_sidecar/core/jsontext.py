"""JSON text edited in place, so that whatever a peer wrote passes on as it was written.

A relay that parses and serialises again changes numbers (1e400, 1.0E2), drops duplicates and costs time.
Here a frame is parsed once to be understood, and the few values that must change (ids, progress tokens)
are exchanged in the original bytes. `find_id` locates the id of nearly every frame with one regular
expression; `span` finds any member of a valid document, at the price of a second parse.
"""

import codecs
import json
import json.scanner
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_DECODER = json.JSONDecoder()
_SCAN = json.scanner.make_scanner(_DECODER)  # type: ignore[arg-type]  # typeshed names the wrong type
_SPACE = re.compile(r"[ \t\n\r]*")

# How nearly all frames begin or end: compared with, at a third of the time that the expressions below take.
_PLAIN_HEAD = b'{"jsonrpc":"2.0","id":'
_PLAIN_TAIL = b',"jsonrpc":"2.0","id":'
# Anchored at the start, and nothing but whole members before the id: so it is the outermost object's id.
_HEAD_ID = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?(?:"method"\s*:\s*"[^"\\]*"\s*,\s*)?'
    rb'"id"\s*:\s*(-?\d+|"[^"\\]*")\s*[,}]'
)
# Anchored at the end: the last brace closes the outermost object, so the member before it belongs to it. The
# quote after the comma cannot be escaped and cannot close a string in valid JSON: `"id"` is a whole key.
_TAIL_ID = re.compile(rb',\s*"id"\s*:\s*(-?\d+|"[^"\\]*")\s*\}\s*$')
_TAIL_REACH = 256

# Raw line ends are whitespace in JSON but would cut the frame in two; readers in the field also split at
# U+2028 and U+2029, which can only stand inside strings, where an escape means the same.
_BREAKS = re.compile(rb"[\r\n]|\xe2\x80[\xa8\xa9]")
_FEED, _RETURN = b"\n\r"
_BREAK_TEXT = {b"\r": b" ", b"\n": b" ", b"\xe2\x80\xa8": b"\\u2028", b"\xe2\x80\xa9": b"\\u2029"}


# Parsed, a message may take 40 times its size: one of empty lists alone, for example. Each value but the
# outermost follows one of three marks; marks inside strings count too, which only makes the bound stricter.
_COUNTED_BYTES = 1024 * 1024
MAX_MARKS = 1_000_000
# A value that can be parsed here must be parsed again elsewhere, with less of the interpreter's stack left.
MAX_DEPTH = 512
_PIECE_BYTES = 256 * 1024


class JsonError(ValueError):
    """The text is not one JSON document in UTF-8."""


def loads(data: bytes) -> Any:
    """Parse one UTF-8 JSON document.

    Raises:
        JsonError: not UTF-8, not JSON, nested too deeply, or of too many values.

    """
    if len(data) > _COUNTED_BYTES and _marks(data) + data.count(b",") > MAX_MARKS:
        raise JsonError(f"more than {MAX_MARKS} values")
    try:
        text = data.decode()
        # Nearly all text is one value and nothing else: the scanner alone then does it in half the time.
        try:
            value, end = _SCAN(text, 0)
        except StopIteration:
            end = -1
        value = value if end == len(text) else _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise JsonError(str(error)) from error
    if len(data) > MAX_DEPTH and _marks(data) > MAX_DEPTH and not within_depth(value, MAX_DEPTH):
        raise JsonError(f"nested more than {MAX_DEPTH} deep")
    return value


def _marks(data: bytes) -> int:
    return data.count(b"[") + data.count(b"{")


def is_utf8(data: bytes | memoryview) -> bool:
    """Whether the bytes are UTF-8, with no more memory than a piece of them takes."""
    view, start = memoryview(data), 0
    try:
        while start < len(view):
            piece = view[start : start + _PIECE_BYTES]
            used = codecs.utf_8_decode(piece, "strict", start + _PIECE_BYTES >= len(view))[1]
            start += used
    except UnicodeDecodeError:
        return False
    return True


class _RepeatedError(Exception):
    """An object has a member twice."""


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        raise _RepeatedError


_ONCE = json.JSONDecoder(object_pairs_hook=_once)


def repeats(data: bytes) -> bool:
    """Whether any object of a valid document has a member twice."""
    try:
        _ONCE.decode(data.decode())
    except _RepeatedError:
        return True
    return False


def within_depth(value: Any, depth: int) -> bool:
    """Whether a JSON value nests at most `depth` containers."""
    level: list[Any] = [value]
    for _ in range(depth):
        level = [item for node in level for item in _items(node)]
    return not any(isinstance(node, Mapping | list | tuple) for node in level)


def _items(node: Any) -> Iterable[Any]:
    if isinstance(node, Mapping):
        return node.values()
    return node if isinstance(node, list | tuple) else ()


def dumps(value: Any) -> bytes:
    """Compact JSON; lone surrogates stay escaped, so that the result is always valid UTF-8."""
    return json.dumps(value, separators=(",", ":")).encode()


def one_line(data: bytes) -> bytes:
    """The same document without characters at which a reader might split it."""
    # Looked up as numbers: `b"\n" in data` takes 20 times as long, because it first tries to be that.
    if _FEED not in data and _RETURN not in data and (data.isascii() or data.find(b"\xe2\x80") < 0):
        return data
    return _BREAKS.sub(lambda found: _BREAK_TEXT[found[0]], data)


def find_id(data: bytes, value: Any) -> tuple[int, int]:
    """Where the id of a valid JSON-RPC frame stands, as byte offsets.

    Args:
        data: the frame; its outermost object has the member "id".
        value: the parsed id, which guards against a second member of that name with another value.

    """
    if type(value) is int:
        raw = b"%d" % value
        if data.startswith(_PLAIN_HEAD + raw + b","):
            return len(_PLAIN_HEAD), len(_PLAIN_HEAD) + len(raw)
        if data.endswith(_PLAIN_TAIL + raw + b"}"):
            return len(data) - 1 - len(raw), len(data) - 1
    found = _HEAD_ID.match(data) or _TAIL_ID.search(data, max(0, len(data) - _TAIL_REACH))
    if found is not None and _same(found[1], value):
        return found.span(1)
    return byte_span(data, "id")


def _same(raw: bytes, value: Any) -> bool:
    if type(value) is int:
        return raw == b"%d" % value
    return isinstance(value, str) and raw[:1] == b'"' and raw[1:-1] == value.encode("utf-8", "surrogatepass")


def span(text: str, *path: str) -> tuple[int, int]:
    """Where the value at `path` stands in a valid document whose outer values on the way are objects.

    Raises:
        KeyError: there is no such member.

    """
    start, end = _skip(text, 0), len(text)
    for key in path:
        start, end = _member(text, start, key)
    return start, end


def byte_span(data: bytes, *path: str) -> tuple[int, int]:
    """`span` in byte offsets of the UTF-8 document."""
    text = data.decode()
    start, end = span(text, *path)
    first = len(text[:start].encode())
    return first, first + len(text[start:end].encode())


def replace(data: bytes, raw: bytes, *path: str) -> bytes:
    """The document with the value at `path` exchanged for `raw`."""
    start, end = byte_span(data, *path)
    return data[:start] + raw + data[end:]


def keys(data: bytes, *path: str) -> list[str]:
    """The names of an object's members as they were written, repeated ones too."""
    text = data.decode()
    start = span(text, *path)[0] if path else _skip(text, 0)
    return [key for key, _, _ in _members(text, start)]


def outline(data: bytes, *path: str) -> list[list[str]]:
    """The names of the members of the outermost object and of those on the path, as far as there are objects.

    As they were written, repeated ones too.
    """
    text, found = data.decode(), []
    position: int | None = _skip(text, 0)
    for key in (*path, None):
        if position is None or text[position] != "{":
            break
        members = list(_members(text, position))
        found.append([name for name, _, _ in members])
        position = next((start for name, start, _ in reversed(members) if name == key), None)
    return found


def items(data: bytes, *path: str) -> list[bytes]:
    """The items of an array as they were written."""
    text = data.decode()
    position = _skip(text, span(text, *path)[0] + 1)
    found = []
    while text[position] != "]":
        _, end = _DECODER.raw_decode(text, position)
        found.append(text[position:end].encode())
        position = _skip(text, end)
        if text[position] == ",":
            position = _skip(text, position + 1)
    return found


def _skip(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return position if found is None else found.end()


def _member(text: str, start: int, wanted: str) -> tuple[int, int]:
    """The span of a member's value; of several members of one name the last counts, as for every parser."""
    result = None
    for key, value, end in _members(text, start):
        if key == wanted:
            result = (value, end)
    if result is None:
        raise KeyError(wanted)
    return result


def _members(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    """Name and span of the value of each member of the object that begins here."""
    position = _skip(text, start + 1)
    while text[position] == '"':
        key, position = _DECODER.raw_decode(text, position)
        value = _skip(text, _skip(text, position) + 1)
        _, end = _DECODER.raw_decode(text, value)
        yield key, value, end
        position = _skip(text, end)
        if text[position] == ",":
            position = _skip(text, position + 1)
