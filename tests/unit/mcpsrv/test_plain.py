"""What a hostile server says reaches nobody's terminal as a command."""

import json
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from mcpsrv.commands import tools
from mcpsrv.core import plain
from mcpsrv.terminal import Format, Terminal

WICKED = "\x1b[2J\x1b]0;owned\x07\x9b31m\x7f\x08\r\u202egnp\u2066\ud800[red]x[/red]"
STEERING = set("\x1b\x07\x9b\x7f\x08\r\u202e\u2066\ud800")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("plain äöü 日本 👩‍💻\twith a tab\nand a line", "plain äöü 日本 👩‍💻\twith a tab\nand a line"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\rb\x00c", "a\\x0db\\x00c"),
        ("\x9b2J\x7f", "\\x9b2J\\x7f"),
        ("abc\u202ecba\u2028", "abc\\u202ecba\\u2028"),
        ("\ud800", "\\ud800"),
    ],
)
def test_only_what_steers_a_terminal_is_escaped(text: str, wanted: str) -> None:
    assert plain.shown(text) == wanted
    assert plain.one_line(text) == wanted.replace("\n", "\\n")


def test_a_line_of_a_log_keeps_its_end_and_all_but_what_steers() -> None:
    assert plain.log_line("grün\x1b[0m \x9b\u202e\t!\r\n".encode()) == (
        b"gr\xc3\xbcn\\x1b[0m \\x9b\\u202e\t!\n"
    )
    assert plain.log_line(b"\xff\x9b half") == b"\xff\x9b half"
    assert plain.log_line(b"") == b""


@pytest.fixture
def terminal() -> Terminal:
    """A terminal whose streams write into texts."""
    made = Terminal()
    made.out = Console(file=StringIO(), width=200, highlight=False, force_terminal=False)
    made.err = Console(file=StringIO(), width=200, highlight=False, force_terminal=False)
    return made


def written(terminal: Terminal) -> str:
    streams: list[Any] = [terminal.out.file, terminal.err.file]
    return "".join(stream.getvalue() for stream in streams)


def test_nothing_that_is_shown_steers_the_terminal(terminal: Terminal) -> None:
    terminal.line(WICKED)
    terminal.note(WICKED)
    terminal.warning(WICKED)
    terminal.error(WICKED)
    terminal.table("NAME", rows=[(WICKED + "\nforged",)], styles={0: lambda _text: "green"})
    with terminal.waiting(WICKED) as show:
        show(WICKED)
    tools.print_tools(terminal, [{"name": f"{WICKED}\nforged", "description": WICKED, "inputSchema": {}}])
    tools.print_result(terminal, {"content": [{"type": "text", "text": WICKED}]})
    text = written(terminal)
    assert STEERING & set(text) == set()
    assert text.count("owned") >= 8
    assert "[red]x[/red]" in text
    assert [line for line in text.splitlines() if line.startswith("forged")] == []


def test_json_means_the_same_and_steers_nothing(terminal: Terminal) -> None:
    terminal.form = Format.JSON
    terminal.json({"text": WICKED + "äß"})
    text = written(terminal)
    assert STEERING & set(text) == set()
    assert json.loads(text) == {"text": WICKED + "äß"}
    assert "äß" in text
