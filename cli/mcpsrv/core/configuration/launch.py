"""What an entry comes to: image, words, environment and folders, before it becomes a manifest."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from mcpsrv.core.configuration.placeholders import Value

HOME: Final = "/home/mcp"


class Level(StrEnum):
    """How much a note matters."""

    INFO = "info"
    """Done differently from how it was written; nothing to do."""
    WARNING = "warning"
    """Imported, but it may not do what it did on the desktop."""
    SKIPPED = "skipped"
    """Not imported."""


@dataclass(frozen=True)
class Note:
    """Something to tell about one field of the file: what is so, and the cure."""

    field: str
    message: str
    level: Level = Level.WARNING


class UnsupportedError(Exception):
    """The entry cannot become an MCPServer. The note tells why and what can be done instead."""

    def __init__(self, field_name: str, message: str) -> None:
        super().__init__(message)
        self.note = Note(field_name, message, Level.SKIPPED)


@dataclass(frozen=True)
class Word:
    """One word of the command line. `field` is where it stands in the file."""

    text: str
    field: str
    secret: bool = False

    def with_text(self, text: str) -> "Word":
        """The same word with another text."""
        return dataclasses.replace(self, text=text)


@dataclass(frozen=True)
class Launch:
    """How to run one server. `folders` are paths in the container that become empty volumes."""

    name: str
    field: str
    command: tuple[Word, ...]
    args: tuple[Word, ...] = ()
    env: Mapping[str, Value] = dataclasses.field(default_factory=dict)
    image: str = ""
    working_dir: str = ""
    user: int | None = None
    folders: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    def but(self, *notes: Note, **changes: object) -> "Launch":
        """The same with these changes, and the notes appended."""
        return dataclasses.replace(self, notes=(*self.notes, *notes), **changes)  # type: ignore[arg-type]  # names of fields

    @property
    def words(self) -> tuple[Word, ...]:
        """Command and arguments in order."""
        return (*self.command, *self.args)
