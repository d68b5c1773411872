"""Text from elsewhere, made safe to stand in a status: no control characters, of bounded length."""

from typing import Final

ELLIPSIS: Final = "…"
_KEPT: Final = frozenset("\n\t")


def clean(text: str) -> str:
    """Replace control characters and lone surrogates by U+FFFD; newlines and tabs stay."""
    return "".join(
        char if char in _KEPT or (char.isprintable() or char == " ") else "\ufffd" for char in text
    )


def line(text: str, limit: int) -> str:
    """One line of at most `limit` characters, cut at its end."""
    joined = " ".join(clean(text).split())
    return joined if len(joined) <= limit else joined[: limit - 1] + ELLIPSIS


def tail(text: str, limit: int) -> str:
    """The last `limit` characters, lines kept."""
    kept = clean(text).rstrip()
    return kept if len(kept) <= limit else ELLIPSIS + kept[len(kept) - limit + 1 :]
