"""Which tools clients may see and call, and as what, where the resource names some.

A call must mean the same to relay and server, else the one lets pass what the other does not see: `readings`
sees to that.
"""

import fnmatch
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mcp_sidecar.core import frames, jsontext
from mcp_sidecar.core.overrides import Override, Overrides


class ToolFilter:
    """Globs: `*` any characters, `?` one, `[ab]` one of these; case matters. The server's names count.

    An override of a tool that is kept out changes nothing.
    """

    def __init__(self, allow: Iterable[str], deny: Iterable[str], overrides: Iterable[Override] = ()) -> None:
        self._allow = _pattern(allow)
        self._deny = _pattern(deny)
        wanted = tuple(overrides)
        self._all = Overrides(wanted)
        self._overrides = Overrides(override for override in wanted if self.lets(override.name))

    def lets(self, name: object) -> bool:
        """Whether clients may see and call the tool of this name."""
        if not isinstance(name, str):
            return False
        allowed = self._allow is None or self._allow.match(name) is not None
        return allowed and (self._deny is None or self._deny.match(name) is None)

    def admitted(self, frame: frames.Frame) -> frames.Frame:
        """A client's request as it may pass: with the server's name in its text, the client's in `params`.

        Raises:
            FrameError: it may not; the words are those for a tool that does not exist.

        """
        if frame.method != "tools/call":
            return frame
        shown = frame.params.get("name")
        name = self._overrides.original(shown)
        if name is None or not self.lets(name):
            text = f"Unknown tool: {str(shown)[:256]}"
            raise frames.FrameError(frames.INVALID_PARAMS, text, frame.raw_id)
        if name == shown:
            return frame
        renamed = jsontext.replace(frame.data, jsontext.dumps(name), "params", "name")
        return replace(frames.parse(renamed), params=frame.params)

    def visible(self, tools: Iterable[object]) -> list[Mapping[str, Any]]:
        """The tools of a list that clients may see, as the server wrote them."""
        return [tool for tool in tools if isinstance(tool, dict) and self.lets(tool.get("name"))]

    def listed(self, tools: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Visible tools as clients see them."""
        return [self._overrides.applied(tool) for tool in tools if not self._overrides.hides(tool["name"])]

    def complaint(self, names: Iterable[str]) -> str | None:
        """What the overrides do not achieve with a server whose visible tools have these names."""
        return self._all.complaint(frozenset(names))

    def answer(self, data: bytes) -> bytes:
        """An answer to tools/list as clients may see it; the rest stays as the server wrote it.

        Raises:
            JsonError: it is no JSON, or too much of it.

        """
        result = (jsontext.loads(data) or {}).get("result")
        tools = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(tools, list):
            return data
        parts = jsontext.items(data, "result", "tools")
        kept = [
            self._overrides.written(tool["name"], part)
            for tool, part in zip(tools, parts, strict=True)
            if isinstance(tool, dict)
            and self.lets(tool.get("name"))
            and not self._overrides.hides(tool["name"])
        ]
        return jsontext.replace(data, b"[" + b",".join(kept) + b"]", "result", "tools")


def _pattern(globs: Iterable[str]) -> re.Pattern[str] | None:
    sources = [fnmatch.translate(glob) for glob in globs]
    return re.compile("|".join(sources)) if sources else None
