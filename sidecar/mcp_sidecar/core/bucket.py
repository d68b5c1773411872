"""How many calls a client may make: a token bucket whose whole state is one time.

The time is that up to which a client's calls are spread out when each of them takes its share of a minute
(the "theoretical arrival time" of ITU-T I.371's cell rate algorithm). One that has passed is a full bucket,
so nothing need be kept of a client that was quiet.
"""

from dataclasses import dataclass

_ROUNDING_SECONDS = 1e-6
DEFAULT_BURST_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Limits:
    """What one client may do; 0 is no limit."""

    per_minute: int = 0
    """Calls a minute, in the long run."""
    burst: int = 0
    """Calls at once after a time of quiet; 0: what 10 seconds bring, at least 1."""
    concurrent: int = 0
    """Calls that are open at the same time."""

    def __bool__(self) -> bool:
        """Whether anything is limited."""
        return bool(self.per_minute or self.concurrent)


NONE = Limits()
"""Nothing is limited."""


def take(spread: float, now: float, limits: Limits) -> tuple[float, float]:
    """Let one more call pass, or not.

    Args:
        spread: the client's state, 0.0 for one that is not known; the same steady clock as `now`, in seconds.
        now: the time.
        limits: with `per_minute` above 0.

    Returns:
        The new state, and the seconds that this call would have to wait; at 0.0 it passes.

    """
    interval = 60.0 / limits.per_minute
    burst = limits.burst or max(1, limits.per_minute * DEFAULT_BURST_SECONDS // 60)
    begin = max(spread, now)
    wait = begin - now - (burst - 1) * interval
    if wait > _ROUNDING_SECONDS:
        return spread, wait
    return begin + interval, 0.0
