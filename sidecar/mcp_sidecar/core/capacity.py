"""Who makes room where no more sessions fit: the one who has the most of them.

Else one subject could take all places, and whoever it shares them with would get none.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

Rank = tuple[int, bool, float]
Place = TypeVar("Place")


def rank(
    owner: str, newcomer: str, held: Mapping[str, int], *, working: bool, listening: bool, last_used: float
) -> Rank | None:
    """When it is this place's turn to be given to a newcomer: the lowest goes first; None: it stays.

    First go those of the subject that has the most, and of these the one that was idle longest. A subject
    gives only to itself and to one that has fewer. A place with a stream is never given to its own subject,
    and to another one if that has at least two fewer: so streams hold no more than an equal share.

    Args:
        owner: the subject that has the place.
        newcomer: the subject that wants one.
        held: how many each subject has; who is not there has none.
        working: whether somebody waits for an answer there.
        listening: whether a stream is open there.
        last_used: when it was used last, by any clock.

    """
    own = held.get(newcomer, 0)
    free = not listening if owner == newcomer else held[owner] > own + listening
    return (-held[owner], listening, last_used) if free and not working else None


def first(places: Iterable[Place], turn: Callable[[Place], Rank | None]) -> Place | None:
    """The place whose turn it is to be given to a newcomer; None: all stay."""
    found = [(rank, place) for place in places if (rank := turn(place)) is not None]
    return min(found, key=lambda one: one[0])[1] if found else None
