"""Whose is a message from the server that carries no link to a call.

Only when every call the server may still be working on belongs to one session is the answer known. In any
other case there is none: never guessed, never broadcast.
"""

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def sole_owner(owners: Iterable[T]) -> T | None:
    """The one owner of all calls in flight, or None."""
    found: T | None = None
    for owner in owners:
        if found is None:
            found = owner
        elif found is not owner:
            return None
    return found
