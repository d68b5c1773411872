"""What people and scripts read: results on stdout, as text or as JSON; progress and notes on stderr."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

# Of a pipe: wide enough that no table is cut.
_PIPE_WIDTH: Final = 400


class Format(StrEnum):
    """Form of the result on stdout."""

    TEXT = "text"
    JSON = "json"


class Terminal:
    """Both streams. Texts are printed as they are, without rich's markup, unless they come from here."""

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
        self.out.file.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
        self.out.file.flush()

    def line(self, text: str = "", style: str = "") -> None:
        """One line of the result."""
        self.out.print(escape(text), style=style or None, soft_wrap=True)

    def note(self, text: str, style: str = "") -> None:
        """One line for people, not part of the result."""
        self.err.print(escape(text), style=style or None, soft_wrap=True)

    def warning(self, text: str) -> None:
        """Something that may matter."""
        self.err.print(f"[yellow]![/yellow] {escape(text)}", soft_wrap=True)

    def error(self, text: str) -> None:
        """Why the command ends."""
        self.err.print(f"[red]error:[/red] {escape(text)}", soft_wrap=True)

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
        with self.err.status(escape(text)) as status:
            yield lambda news: status.update(escape(news))


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    return console


def _styled(text: str, style: Callable[[str], str] | None) -> str:
    colour = style(text) if style else ""
    return f"[{colour}]{escape(text)}[/{colour}]" if colour and text else escape(text)


def phase_colour(phase: str) -> str:
    """The colour of a phase, or of a condition's value."""
    good, bad = {"Connected", "True", "yes"}, {"Error", "False", "no"}
    return "green" if phase in good else "red" if phase in bad else "yellow"
