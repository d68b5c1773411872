"""Hides what is a secret between the relay and a remote server in texts that others read."""

from collections.abc import Callable, Iterator
from urllib.parse import unquote, unquote_plus

Mask = Callable[[str], str]
MASKED = "***"
_MIN_HEADER = 4
# Values of a URL's query are no secrets for the most part: "true" must not vanish from every sentence.
_MIN_QUERY = 8
_MIN_SHOWN = 2


class Secrets:
    """What is secret, by where it was learnt: what is learnt from there again takes its place."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ...]] = {}

    def value(self, source: str, value: str) -> None:
        """A header's value, or the id of a session."""
        self._known[source] = (value,) if len(value) >= _MIN_HEADER else ()

    def path(self, source: str, path: str) -> None:
        """A path whose query may hold a secret: short values are hidden only next to their names."""
        self._known[source] = tuple(sorted(_of_query(path.partition("?")[2]), key=len, reverse=True))

    def masked(self, text: str) -> str:
        """The text without what is secret."""
        for values in self._known.values():
            for value in values:
                text = text.replace(value, MASKED)
        return text


def _of_query(query: str) -> Iterator[str]:
    for pair in query.split("&"):
        name, found, value = pair.partition("=")
        spellings = {value, unquote(value), unquote_plus(value)} if found else {name}
        for spelling in spellings:
            if len(spelling) >= _MIN_QUERY:
                yield spelling
            if found and len(spelling) >= _MIN_SHOWN:
                yield f"{name}={spelling}"
