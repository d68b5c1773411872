"""That what a client sends means the same to the relay and to the server.

Parsers differ in what they make of a member that stands twice (the first or the last counts) and of names
that differ in case alone (to some, Go's `encoding/json` among them, they are the same name). If relay and
server read another id, another method or another tool, one client gets the answer to another's call, and
limits, filter and audit log are about something else than what the server does. So frames with two readings
are refused, as far as the relay itself goes by what they say; arguments and whatever else it only passes on
may have any names.
"""

from typing import Any

from mcp_sidecar.core import frames, jsontext

_META = "_meta"
_TOP = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
_META_WORDS = frozenset({"progressToken"})
_OTHER = frozenset({_META})
# What is read of the params, by method; `_meta` of all.
_PARAMS = {
    "tools/call": frozenset({_META, "name"}),
    "notifications/cancelled": frozenset({_META, "requestId"}),
    "resources/subscribe": frozenset({_META, "uri"}),
    "resources/unsubscribe": frozenset({_META, "uri"}),
    "logging/setLevel": frozenset({_META, "level"}),
    # Revision 2026-07-28: headers have to say the same.
    "prompts/get": frozenset({_META, "name"}),
    "resources/read": frozenset({_META, "uri"}),
    "tasks/get": frozenset({_META, "taskId"}),
    "tasks/update": frozenset({_META, "taskId"}),
    "tasks/cancel": frozenset({_META, "taskId"}),
}
_ALL = (_TOP, _META_WORDS, _OTHER, *_PARAMS.values())
_FOLDED = {words: frozenset(map(str.casefold, words)) for words in _ALL}
_USUAL = {words: words | {"arguments"} for words in (_OTHER, *_PARAMS.values())}
# As they stand in nearly all texts; a letter of a name may also be written as `\u00` and two digits.
_QUOTED = {words: b'"%b"' % "".join(words - {_META}).encode() for words in _USUAL}
_ESCAPED_LETTER = b"\\u00"


def parse(data: bytes) -> frames.Frame:
    """Understand one frame of a client, and only one that every parser understands alike.

    Raises:
        FrameError: it is none.

    """
    data = jsontext.one_line(data)
    message = frames.load(data)
    frame = frames.understood(data, message)
    params, words = frame.params, _PARAMS.get(frame.method, _OTHER)
    if (
        (not message.keys() <= _TOP and _odd(message, _TOP))
        or (not params.keys() <= _USUAL[words] and _odd(params, words))
        or (_META in params and _odd(params[_META], _META_WORDS))
        or (
            data.count(b":") != _members(message, params)
            and _suspicious(frame, words)
            and _repeated(frame.data, words)
        )
    ):
        raw = frame.raw_id or frames.NULL
        raise frames.FrameError(frames.INVALID_REQUEST, "Invalid request: ambiguous member names", raw)
    return frame


def _odd(members: Any, words: frozenset[str]) -> bool:
    """Whether a name that counts is written in another case."""
    folded = _FOLDED[words]
    return isinstance(members, dict) and any(
        name not in words and name.casefold() in folded for name in members
    )


def _members(message: dict[str, Any], params: dict[str, Any]) -> int:
    """The number of members of a usual frame.

    Each member has a colon in the text. So a text with just as many has none that the parser dropped because
    it stood twice; one with more has it in strings, in deeper objects, or indeed in repeated members.
    """
    arguments = params.get("arguments")
    return len(message) + len(params) + (len(arguments) if type(arguments) is dict else 0)


def _suspicious(frame: frames.Frame, words: frozenset[str]) -> bool:
    """Whether a name that counts may stand twice in its object: nearly always the text has it once."""
    data, params = frame.data, frame.params
    count = data.count
    return (
        count(b'"id"') > 1
        or count(b'"method"') > 1
        or count(b'"params"') > 1
        or count(b'"jsonrpc"') > 1
        or data.find(_ESCAPED_LETTER) >= 0
        or (words is not _OTHER and count(_QUOTED[words]) > 1)
        or (not frame.method and (count(b'"result"') > 1 or count(b'"error"') > 1))
        or (_META in params and (count(b'"_meta"') > 1 or count(b'"progressToken"') > 1))
    )


def _repeated(data: bytes, words: frozenset[str]) -> bool:
    """Whether it does."""
    if not jsontext.repeats(data):
        return False
    levels = jsontext.outline(data, "params", _META)
    return any(
        names.count(word) > 1
        for names, counted in zip(levels, (_TOP, words, _META_WORDS), strict=False)
        for word in counted
    )
