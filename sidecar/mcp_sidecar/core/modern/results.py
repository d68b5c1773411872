"""Answers of a server of one era for clients of the other, changed where they must and nowhere else."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_sidecar.core import frames, jsontext
from mcp_sidecar.core.lines import Line, has, joined
from mcp_sidecar.core.modern import envelope, errors, members, methods

RESOURCE_NOT_FOUND = -32002
"""Code of the older revisions; this one uses that of invalid params."""
_TYPE, _TTL, _SCOPE = "resultType", "ttlMs", "cacheScope"
_COMPLETE: Mapping[str, bytes] = {_TYPE: b'"complete"'}
_FRESH: Mapping[str, bytes] = {_TTL: b"0", _SCOPE: b'"private"'}
# As answers begin: with nothing but id and version before the result, so that it is the outermost one.
_BEGIN = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?(?:"id"\s*:\s*(?:\d+|"\d+")\s*,\s*)?'
    rb'(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"result"\s*:\s*\{'
)
_EMPTY = re.compile(rb"\s*\}")
# By whether the result can be kept by caches: what it needs, as text, and the names that this concerns.
_FRONTS = (b'"resultType":"complete"', b'"resultType":"complete","ttlMs":0,"cacheScope":"private"')
_NAMES = ((b'"_meta"', b'"resultType"'), (b'"_meta"', b'"resultType"', b'"ttlMs"', b'"cacheScope"'))
_INFO_KEY = envelope.SERVER_INFO_KEY.encode()
_ASKS = b'"input_required"'


@dataclass(slots=True)
class Answer:
    """The text of an answer, with its id at [start:end]."""

    data: Line
    start: int
    end: int


def completed(answer: Answer, method: str, info: bytes) -> Answer:
    """A result of a server with a handshake, as clients without a session want it.

    `info` is the server's identity as JSON. A large result is not read: it only gets what can stand in front.
    """
    data, cacheable = answer.data, method in methods.CACHEABLE
    quick = None
    if len(data) > frames.TRUSTED_BYTES and frames.big_answer(data) is not None:
        quick = _in_front(answer, _FRONTS[cacheable])
    elif not any(has(data, name) for name in _NAMES[cacheable]):
        quick = _in_front(answer, b'%b,"_meta":%b' % (_FRONTS[cacheable], _meta(info)))
    if quick is not None:
        return quick
    text = bytes(data)
    result = jsontext.loads(text)["result"]
    if not isinstance(result, dict):
        return answer
    wanted = {**_COMPLETE, **(_FRESH if cacheable else {})}
    return changed(answer, _read(text, result, wanted, info))


def _meta(info: bytes) -> bytes:
    return b'{"%b":%b}' % (_INFO_KEY, info)


def _read(text: bytes, result: Mapping[str, Any], wanted: dict[str, bytes], info: bytes) -> bytes:
    """A result that was read: what it lacks is added."""
    meta = result.get("_meta")
    if isinstance(meta, Mapping) and envelope.SERVER_INFO_KEY not in meta:
        text = members.edited(text, ("result", "_meta"), put={envelope.SERVER_INFO_KEY: info})
    elif meta is None:
        wanted["_meta"] = _meta(info)
    absent = {name: raw for name, raw in wanted.items() if name not in result or result[name] is None}
    return members.edited(text, ("result",), put=absent)


def _in_front(answer: Answer, added: bytes) -> Answer | None:
    """The answer with members put in front of the result's; of two of one name the later one counts."""
    data = answer.data
    begin = _BEGIN.match(data)
    if begin is None:
        return None
    at = begin.end()
    if _EMPTY.match(data, at) is None:
        added += b","
    moved = len(added) if answer.start > at else 0
    view = memoryview(data)
    return Answer(joined((view[:at], added, view[at:])), answer.start + moved, answer.end + moved)


def changed(answer: Answer, text: bytes) -> Answer:
    """An answer with another text, in which its id has to be looked for."""
    number = jsontext.loads(bytes(answer.data[answer.start : answer.end]))
    return Answer(text, *jsontext.find_id(text, number))


def wants_input(data: Line) -> dict[str, Any] | None:
    """The result of an answer that is that more is wanted of the client; None for every other answer."""
    if not has(data, _ASKS):
        return None
    result = jsontext.loads(bytes(data)).get("result")
    return result if isinstance(result, dict) and result.get(_TYPE) == "input_required" else None


def plain(answer: Answer, method: str) -> Answer:
    """A result of a server without sessions, as clients with one know it. Large ones stay as they are."""
    if len(answer.data) > frames.TRUSTED_BYTES:
        return answer
    text = bytes(answer.data)
    result = jsontext.loads(text).get("result")
    if not isinstance(result, dict):
        return answer
    meta = result.get("_meta")
    foreign = {_TYPE, *(_FRESH if method in methods.CACHEABLE else ())} & result.keys()
    if isinstance(meta, Mapping) and envelope.SERVER_INFO_KEY in meta:
        if len(meta) == 1:
            foreign.add("_meta")
        else:
            text = members.edited(text, ("result", "_meta"), drop=(envelope.SERVER_INFO_KEY,))
    quick = members.without(text, _TYPE, result[_TYPE]) if foreign == {_TYPE} else None
    if quick is not None:
        return changed(answer, quick)
    return changed(answer, members.edited(text, ("result",), drop=foreign) if foreign else text)


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
