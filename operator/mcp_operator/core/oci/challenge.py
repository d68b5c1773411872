"""What a registry asks for when it wants to know who is there: the header WWW-Authenticate."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

# RFC 9110, section 11: a scheme, then name=value pairs, values as tokens or quoted.
_PAIR: Final = re.compile(r'([a-zA-Z0-9_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_SCHEME: Final = re.compile(r"\s*([a-zA-Z0-9-]+)(?:\s+(.*))?", re.DOTALL)


@dataclass(frozen=True)
class Challenge:
    """One way to authenticate."""

    scheme: str
    """In small letters: `bearer`, `basic`, …"""
    parameters: dict[str, str] = field(default_factory=dict)
    """Names in small letters."""


def parse(headers: Iterable[str]) -> tuple[Challenge, ...]:
    """The challenges of an answer, one a header, as registries send them."""
    return tuple(
        Challenge(found[1].lower(), _parameters(found[2] or ""))
        for header in headers
        for found in [_SCHEME.fullmatch(header)]
        if found is not None
    )


def _parameters(text: str) -> dict[str, str]:
    return {
        name.lower(): re.sub(r"\\(.)", r"\1", quoted) if quoted else plain
        for name, quoted, plain in _PAIR.findall(text)
    }
