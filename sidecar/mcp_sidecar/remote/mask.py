"""Hides what is a secret between the relay and a remote server in texts that others read."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus

Mask = Callable[[str], str]
MASKED = "***"
_MIN_HEADER = 4
# Values of a URL's query, and words of a header's value, are no secrets for the most part: "true" must not
# vanish from every sentence.
_MIN_QUERY = 8
_MIN_SHOWN = 2
_BETWEEN_WORDS = re.compile(r"[\s,;]+")
_HTML = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#x27;"))


class Secrets:
    """What is secret, by where it was learnt: what is learnt from there again takes its place."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}
        self._known: dict[str, tuple[str, ...]] = {}

    def value(self, source: str, value: str, prefix: str = "") -> None:
        """A header's value, or the id of a session; `prefix` is what stands before it and is no secret."""
        if self._told.get(source) == value:  # asked for with every request
            return
        self._told[source] = value
        found = {value, *_credentials(prefix + value)} if len(value) >= _MIN_HEADER else set()
        self._known[source] = _longest_first(spelling for text in found for spelling in _spellings(text))

    def path(self, source: str, path: str) -> None:
        """A path whose query may hold a secret: short values are hidden only next to their names."""
        self._known[source] = _longest_first(_of_query(path.partition("?")[2]))

    def masked(self, text: str) -> str:
        """The text without what is secret."""
        for values in self._known.values():
            for value in values:
                text = text.replace(value, MASKED)
        return text

    def within(self, value: Any) -> Any:
        """A JSON value whose texts do not show what is secret."""
        if isinstance(value, str):
            return self.masked(value)
        if isinstance(value, Mapping):
            return {key: self.within(item) for key, item in value.items()}
        return [self.within(item) for item in value] if isinstance(value, list) else value


def _longest_first(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(texts), key=len, reverse=True))


def _credentials(value: str) -> Iterator[str]:
    """What of a header's whole value is a secret by itself: servers repeat a token without its scheme."""
    scheme, *words = _BETWEEN_WORDS.split(value)
    for word in (scheme, *words):
        parts = (word.partition("=")[2].strip('"'), word if word is not scheme else "")
        yield from (part for part in parts if len(part) >= _MIN_QUERY)
    if scheme.lower() == "basic" and words:
        password = _decoded(words[0]).partition(":")[2]
        if len(password) >= _MIN_HEADER:
            yield password


def _decoded(word: str) -> str:
    try:
        return base64.b64decode(word, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


def _spellings(text: str) -> Iterator[str]:
    """How a text may stand in JSON, in a URL and in HTML."""
    yield from (text, json.dumps(text)[1:-1], quote(text, safe=""), quote_plus(text))
    for character, name in _HTML:
        text = text.replace(character, name)
    yield text


def _of_query(query: str) -> Iterator[str]:
    for pair in query.split("&"):
        name, found, value = pair.partition("=")
        spellings = {value, unquote(value), unquote_plus(value)} if found else {name}
        for spelling in spellings:
            if len(spelling) >= _MIN_QUERY:
                yield spelling
            if found and len(spelling) >= _MIN_SHOWN:
                yield f"{name}={spelling}"
