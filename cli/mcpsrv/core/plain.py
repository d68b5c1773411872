r"""Text that a server chose, made safe for a terminal: what would steer it is shown instead, as `\x1b`.

A terminal obeys control characters (C0, DEL, C1) and lets characters that turn the direction of writing show
one text as another; lone surrogates cannot be written at all. Lines and tabs stay.
"""

import re

_STEERING = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_BYTES = re.compile(rb"[\0-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]|\xe2\x81[\xa6-\xa9]")


def shown(text: str) -> str:
    """The text for people."""
    return _STEERING.sub(_escape, text)


def one_line(text: str) -> str:
    """The text for people where only one line has room."""
    return shown(text).replace("\n", "\\n")


def in_json(document: str) -> str:
    r"""A JSON document of the same meaning: in its strings such characters are written as `\u009b`."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def log_line(line: bytes) -> bytes:
    """A line of a log, its line end kept."""
    whole = line.rstrip(b"\r\n")
    safe = _BYTES.sub(lambda found: _escape_all(found[0].decode()), whole)
    return safe + (b"\n" if whole != line else b"")


def _escape_all(text: str) -> bytes:
    return "".join(map(_escaped, text)).encode()


def _escape(found: re.Match[str]) -> str:
    return _escaped(found[0])


def _escaped(char: str) -> str:
    return f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}"
