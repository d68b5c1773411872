"""Answers of a server of one era for clients of the other, changed where they must and nowhere else."""

import re
from collections.abc import Mapping
from typing import Any

from mcp_sidecar.core import frames, jsontext
from mcp_sidecar.core.lines import Line
from mcp_sidecar.core.modern import envelope, errors, members, methods

RESOURCE_NOT_FOUND = -32002
"""Code of the older revisions; this one uses that of invalid params."""
_TYPE, _TTL, _SCOPE = "resultType", "ttlMs", "cacheScope"
_COMPLETE: Mapping[str, bytes] = {_TYPE: b'"complete"'}
_FRESH: Mapping[str, bytes] = {_TTL: b"0", _SCOPE: b'"private"'}
_BEGIN = re.compile(rb'"result"\s*:\s*\{(\s*\})?')
_ASKS = b'"input_required"'


def completed(data: Line, method: str, info: Any) -> Line:
    """A result of a server with a handshake, as clients without a session want it.

    `info` is the server's identity. A large result is not read: it only gets what can stand in front.
    """
    wanted = {**_COMPLETE, **(_FRESH if method in methods.CACHEABLE else {})}
    if len(data) > frames.TRUSTED_BYTES:
        return _opened(data, wanted)
    text = bytes(data)
    result = jsontext.loads(text)["result"]
    if not isinstance(result, dict):
        return data
    meta = result.get("_meta")
    raw_info = jsontext.dumps(info)
    if isinstance(meta, Mapping) and envelope.SERVER_INFO_KEY not in meta:
        text = members.edited(text, ("result", "_meta"), put={envelope.SERVER_INFO_KEY: raw_info})
    elif meta is None:
        wanted["_meta"] = b'{"%b":%b}' % (envelope.SERVER_INFO_KEY.encode(), raw_info)
    absent = {name: raw for name, raw in wanted.items() if name not in result or name == "_meta"}
    return members.edited(text, ("result",), put=absent)


def _opened(data: Line, wanted: Mapping[str, bytes]) -> Line:
    """The text with members put in front of the others: of two of one name the later one counts."""
    found = _BEGIN.search(data, 0, 256)
    if found is None:
        return data
    added = b",".join(b'"%b":%b' % (name.encode(), raw) for name, raw in wanted.items())
    start = found.start() + found[0].index(b"{") + 1
    comma = b"" if found[1] is not None else b","
    return b"".join((memoryview(data)[:start], added, comma, memoryview(data)[start:]))


def moved(data: Line) -> tuple[int, int]:
    """Where the id of an answer stands after it was changed."""
    big = frames.big_answer(data) if len(data) > frames.TRUSTED_BYTES else None
    if big is not None:
        return big.start, big.end
    text = bytes(data)
    return jsontext.find_id(text, jsontext.loads(text)["id"])


def wants_input(data: Line) -> dict[str, Any] | None:
    """The result of an answer that is that more is wanted of the client; None for every other answer."""
    if _ASKS not in data:
        return None
    result = jsontext.loads(bytes(data)).get("result")
    return result if isinstance(result, dict) and result.get(_TYPE) == "input_required" else None


def plain(data: Line, method: str) -> Line:
    """A result of a server without sessions, as clients with one know it. Large ones stay as they are."""
    if len(data) > frames.TRUSTED_BYTES:
        return data
    text = bytes(data)
    result = jsontext.loads(text).get("result")
    if not isinstance(result, dict):
        return data
    meta = result.get("_meta")
    foreign = {_TYPE, *(_FRESH if method in methods.CACHEABLE else ())}
    if isinstance(meta, Mapping) and envelope.SERVER_INFO_KEY in meta:
        if len(meta) == 1:
            foreign.add("_meta")
        else:
            text = members.edited(text, ("result", "_meta"), drop=(envelope.SERVER_INFO_KEY,))
    return members.edited(text, ("result",), drop=foreign) if foreign & result.keys() else text


def code(data: Line) -> object:
    """The code of an error answer."""
    error = jsontext.loads(bytes(data)).get("error")
    return error.get("code") if isinstance(error, dict) else None


def renamed(data: bytes, method: str) -> bytes:
    """An error answer of a server with a handshake, with the code that this revision has for it."""
    if method == "resources/read" and code(data) == RESOURCE_NOT_FOUND:
        return jsontext.replace(data, b"%d" % frames.INVALID_PARAMS, "error", "code")
    return data


def status(data: Line) -> int:
    """The HTTP status of a reply with this error answer."""
    return errors.status(code(data))
