"""Which tools clients may see and call, where the resource names some.

A call must mean the same to relay and server, else the one lets pass what the other does not see: a message
whose members could be read in two ways (a name twice, or a name in another case, which some parsers take for
the same) is refused.
"""

import fnmatch
import re
from collections.abc import Iterable

from mcp_sidecar.core import frames, jsontext

_WORDS = frozenset({"jsonrpc", "id", "method", "params", "result", "error", "name"})


class ToolFilter:
    """Globs: `*` any characters, `?` one, `[ab]` one of these; case matters."""

    def __init__(self, allow: Iterable[str], deny: Iterable[str]) -> None:
        self._allow = _pattern(allow)
        self._deny = _pattern(deny)

    def lets(self, name: object) -> bool:
        """Whether clients may see and call the tool of this name."""
        if not isinstance(name, str):
            return False
        allowed = self._allow is None or self._allow.match(name) is not None
        return allowed and (self._deny is None or self._deny.match(name) is None)

    def refusal(self, frame: frames.Frame) -> str | None:
        """Why a client's request may not pass; the words are those for a tool that does not exist."""
        if frame.method != "tools/call" or self.lets(frame.params.get("name")):
            return None
        return f"Unknown tool: {str(frame.params.get('name'))[:256]}"

    def listed(self, tools: list[object]) -> list[object]:
        """The tools of a list that clients may see."""
        return [tool for tool in tools if self.lets(tool.get("name") if isinstance(tool, dict) else None)]

    def answer(self, data: bytes) -> bytes:
        """An answer to tools/list without the other tools; the rest stays as the server wrote it.

        Raises:
            JsonError: it is no JSON, or too much of it.

        """
        result = (jsontext.loads(data) or {}).get("result")
        tools = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(tools, list):
            return data
        parts = jsontext.items(data, "result", "tools")
        kept = [
            part
            for tool, part in zip(tools, parts, strict=True)
            if isinstance(tool, dict) and self.lets(tool.get("name"))
        ]
        return jsontext.replace(data, b"[" + b",".join(kept) + b"]", "result", "tools")


def parse(data: bytes) -> frames.Frame:
    """Understand one frame of a client, and only one that every parser understands alike.

    Raises:
        FrameError: it is none.

    """
    frame = frames.parse(data)
    names = [jsontext.keys(frame.data)]
    if frame.params:
        names.append(jsontext.keys(frame.data, "params"))
    for found in names:
        folded = [name.casefold() for name in found]
        odd = any(name not in _WORDS and word in _WORDS for name, word in zip(found, folded, strict=True))
        if odd or len(set(folded)) < len(folded):
            raw = frame.raw_id or frames.NULL
            raise frames.FrameError(frames.INVALID_REQUEST, "Invalid request: ambiguous member names", raw)
    return frame


def _pattern(globs: Iterable[str]) -> re.Pattern[str] | None:
    sources = [fnmatch.translate(glob) for glob in globs]
    return re.compile("|".join(sources)) if sources else None
