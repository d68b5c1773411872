"""What people and scripts read: results on stdout, as text or as JSON; progress and notes on stderr."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mcpsrv.core import plain

# Of a pipe: wide enough that no table is cut.
_PIPE_WIDTH: Final = 400


class Format(StrEnum):
    """Form of the result on stdout."""

    TEXT = "text"
    JSON = "json"


class Terminal:
    """Both streams. No text steers the terminal, neither by rich's markup nor by control characters."""

    def __init__(self, form: Format = Format.TEXT) -> None:
        self.form = form
        self.out = _console(stderr=False)
        self.err = _console(stderr=True)

    @property
    def is_json(self) -> bool:
        """Whether a program reads the result."""
        return self.form is Format.JSON

    def result(self, value: Any, text: Callable[[], None]) -> None:
        """The result of the command: `value` as JSON, or what `text` prints."""
        if self.is_json:
            self.json(value)
        else:
            text()

    def json(self, value: Any) -> None:
        """One JSON document on stdout."""
        self.out.file.write(plain.in_json(json.dumps(value, indent=2, ensure_ascii=False)) + "\n")
        self.out.file.flush()

    def line(self, text: str = "", style: str = "") -> None:
        """One line of the result."""
        self.out.print(_safe(text), style=style or None, soft_wrap=True)

    def note(self, text: str, style: str = "") -> None:
        """One line for people, not part of the result."""
        self.err.print(_safe(text), style=style or None, soft_wrap=True)

    def warning(self, text: str) -> None:
        """Something that may matter."""
        self.err.print(f"[yellow]![/yellow] {_safe(text)}", soft_wrap=True)

    def error(self, text: str) -> None:
        """Why the command ends."""
        self.err.print(f"[red]error:[/red] {_safe(text)}", soft_wrap=True)

    def table(
        self, *heads: str, rows: Sequence[tuple[str, ...]], styles: dict[int, Callable[[str], str]]
    ) -> None:
        """Columns with a head each, without lines; `styles` give a column's colour by its text."""
        made = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 3, 0, 0))
        for n, head in enumerate(heads):
            made.add_column(head, overflow="fold", no_wrap=n == 0)
        for row in rows:
            made.add_row(*(_styled(text, styles.get(n)) for n, text in enumerate(row)))
        self.out.print(made)

    @contextmanager
    def waiting(self, text: str) -> Iterator[Callable[[str], None]]:
        """Shows what is waited for: a spinner on a terminal, else a line for each news."""
        if not self.err.is_terminal:
            said = [""]

            def tell(news: str) -> None:
                if news != said[0]:
                    said[0] = news
                    self.note(news)

            yield tell
            return
        with self.err.status(_safe(text)) as status:
            yield lambda news: status.update(_safe(news))


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    return console


def _safe(text: str) -> str:
    return escape(plain.shown(text))


def _styled(text: str, style: Callable[[str], str] | None) -> str:
    colour = style(text) if style else ""
    safe = escape(plain.one_line(text))
    return f"[{colour}]{safe}[/{colour}]" if colour and text else safe


def phase_colour(phase: str) -> str:
    """The colour of a phase, or of a condition's value."""
    good, bad = {"Connected", "True", "yes"}, {"Error", "False", "no"}
    return "green" if phase in good else "red" if phase in bad else "yellow"
