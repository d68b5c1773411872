"""JSON as people write it: comments and trailing commas, as VS Code allows."""

import json
import re
from typing import Any, Final

from mcpsrv.core.errors import UsageError

# A string, or what JSON does not know. Strings are matched so that what looks like a comment in them stays.
_TOKEN: Final = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING: Final = re.compile(r'"(?:\\.|[^"\\])*"|,(?=\s*[}\]])', re.DOTALL)


def parse(text: str, source: str) -> Any:
    """The value. Raises UsageError with the line and the column of what cannot be read."""
    plain = _TRAILING.sub(_blank, _TOKEN.sub(_blank, text.removeprefix("\ufeff")))
    try:
        return json.loads(plain)
    except ValueError as error:
        raise UsageError(f"{source} is no JSON: {error}") from error


def _blank(found: re.Match[str]) -> str:
    """Strings stay; the rest becomes blanks, so that lines and columns stay what they were."""
    if found[0].startswith('"'):
        return found[0]
    return re.sub(r"[^\n]", " ", found[0])
