"""Times as people say them."""

from datetime import datetime
from typing import Final

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def ago(time: str, now: datetime) -> str:
    """How long ago a time (RFC 3339) was, in its largest unit; the text itself if it is no time."""
    try:
        seconds = (now - datetime.fromisoformat(time)).total_seconds()
    except ValueError:
        return time or "?"
    return f"{_span(seconds)} ago" if seconds >= 1 else "now"


def ahead(time: str, now: datetime) -> str:
    """How far a time lies ahead."""
    seconds = (datetime.fromisoformat(time) - now).total_seconds()
    return f"in {_span(seconds)}" if seconds >= 1 else "now"


def _span(seconds: float) -> str:
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "0 s"
