"""The texts of a server inside a document, taken out to be masked and put back.

A server may write the secrets it was given into whatever it says of itself. Only the launcher knows them, so
what goes into the status or the log passes through it first.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

WITHHELD = "(withheld: it could not be searched for secrets)"


def taken(value: Any) -> list[str]:
    """All texts in a JSON value, keys of objects included, in a fixed order."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for key, item in value.items() for text in (key, *taken(item))]
    if isinstance(value, list | tuple):
        return [text for item in value for text in taken(item)]
    return []


def put_back(value: Any, texts: Sequence[str]) -> Any:
    """The value with these texts in place of those that `taken` gave; of keys that become equal one stays."""
    return _put(value, iter(texts))


def _put(value: Any, texts: Iterator[str]) -> Any:
    if isinstance(value, str):
        return next(texts)
    if isinstance(value, Mapping):
        return {next(texts): _put(item, texts) for item in value.values()}
    if isinstance(value, list | tuple):
        return [_put(item, texts) for item in value]
    return value
