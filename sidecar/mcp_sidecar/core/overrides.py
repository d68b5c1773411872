"""Tools under another name, title or description than the server gave them.

Clients see and call the new name alone: the old one is then that of no tool, unless another tool got it. What
is not overridden passes as the server wrote it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_sidecar.core import jsontext
from mcp_sidecar.core.modern import members


@dataclass(frozen=True, slots=True)
class Override:
    """What clients are told of the tool that the server calls `name`; None: what the server says."""

    name: str
    rename: str | None = None
    title: str | None = None
    description: str | None = None

    @property
    def shown(self) -> str:
        """The tool's name for clients."""
        return self.name if self.rename is None else self.rename

    def values(self) -> dict[str, str]:
        """The members of the tool that change."""
        new = {"name": self.rename, "title": self.title, "description": self.description}
        return {key: value for key, value in new.items() if value is not None}


class Overrides:
    """All overrides of one server; their names, old and new, are unique."""

    def __init__(self, overrides: Iterable[Override]) -> None:
        self._by_name = {override.name: override for override in overrides}
        self._moved = {o.shown: o.name for o in self._by_name.values() if o.shown != o.name}

    def original(self, shown: object) -> str | None:
        """The server's name of the tool that clients know as `shown`; None: they know none of that name."""
        if not isinstance(shown, str):
            return None
        if shown in self._moved:
            return self._moved[shown]
        override = self._by_name.get(shown)
        return shown if override is None or override.shown == shown else None

    def hides(self, name: str) -> bool:
        """Whether a tool cannot be shown because another one was given its name."""
        return name in self._moved and name not in self._by_name

    def applied(self, tool: Mapping[str, Any]) -> Mapping[str, Any]:
        """A tool as clients see it."""
        override = self._by_name.get(tool["name"])
        return tool if override is None else {**tool, **override.values()}

    def written(self, name: str, text: bytes) -> bytes:
        """The same for the text of the tool that the server calls `name`."""
        override = self._by_name.get(name)
        new = {} if override is None else override.values()
        if not new:
            return text
        return members.edited(text, (), put={key: jsontext.dumps(value) for key, value in new.items()})

    def complaint(self, names: frozenset[str]) -> str | None:
        """What does not work out with a server whose tools, those that clients may see, have these names."""
        hidden = sorted(name for name in names if self.hides(name))
        missing = sorted(self._by_name.keys() - names)
        told = []
        if hidden:
            told.append(
                f"spec.tools.overrides gives the names of other tools of the server, which are hidden: "
                f"{_few(hidden)}; choose another rename"
            )
        if missing:
            told.append(
                f"spec.tools.overrides names tools that the server lacks or that spec.tools keeps out:"
                f" {_few(missing)}"
            )
        return ". ".join(told) or None


def _few(names: list[str]) -> str:
    shown = ", ".join(repr(name[:64]) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
