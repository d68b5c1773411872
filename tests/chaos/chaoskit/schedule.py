"""Which faults come in which order: a pure function of the seed."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from chaoskit.kinds import Kind, Scope

LONGEST_PAUSE = 1.5


@dataclass(frozen=True)
class Fault:
    """One fault: its number (from 1), its kind, the server it hits, and the pause before it in seconds.

    A fault of the cluster hits all servers; where one of them is meant in particular, `server` names it.
    """

    number: int
    kind: Kind
    server: str
    pause: float


Round = tuple[Fault, ...]
"""Faults that happen at about the same time, each to a server of its own; or one fault of the cluster."""


def plan(seed: int, count: int, servers: Sequence[str], kinds: Sequence[Kind]) -> tuple[Round, ...]:
    """At least `count` faults, each kind at least once if `count` allows, in random order."""
    chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
    drawn = _draw(chance, count, kinds)
    rounds: list[Round] = []
    number = 1
    while drawn:
        together = _take(drawn, len(servers))
        names = chance.sample(list(servers), len(servers))
        faults = []
        for kind, server in zip(together, names, strict=False):
            faults.append(Fault(number, kind, server, round(chance.uniform(0, LONGEST_PAUSE), 3)))
            number += 1
        rounds.append(tuple(faults))
    return tuple(rounds)


def _draw(chance: random.Random, count: int, kinds: Sequence[Kind]) -> list[Kind]:
    """`count` kinds in random order: each one once, the rest by weight."""
    once = list(kinds)
    chance.shuffle(once)
    drawn = once[:count]
    drawn += chance.choices(list(kinds), [kind.weight for kind in kinds], k=count - len(drawn))
    chance.shuffle(drawn)
    return drawn


def _take(drawn: list[Kind], most: int) -> list[Kind]:
    """Take the kinds of the next round out of `drawn`."""
    together = [drawn.pop(0)]
    if together[0].scope is Scope.CLUSTER:
        return together
    while len(together) < most and drawn:
        index = next((i for i, kind in enumerate(drawn) if kind.scope is Scope.SERVER), None)
        if index is None:
            break
        together.append(drawn.pop(index))
    return together
