"""One line of a log: a JSON object that no terminal and no reader of lines can be deceived with."""

import json
from collections.abc import Mapping
from typing import Any

_ENCODER = json.JSONEncoder(default=str)  # made once: it takes as long as to write a line
MAX_TEXT = 256
"""Characters of a text that somebody else chose."""


def line(fields: Mapping[str, Any]) -> str:
    """The fields as JSON in printable ASCII: control characters, DEL too, and all others are escaped."""
    return _ENCODER.encode(fields).replace("\x7f", "\\u007f")


def text(value: str) -> str:
    """A text that somebody else chose, cut where it is too long."""
    return value if len(value) <= MAX_TEXT else value[: MAX_TEXT - 1] + "…"
