"""When the present trouble began.

Whoever watches the relay counts a deadline from the time a state began. A connection that comes back and
breaks again would move that deadline each time, and so for ever: one that is back for a moment only does not
count as back.
"""

STEADY_SECONDS = 10.0


class Outage:
    """The begin of the time without a session; times are Unix seconds, given by the caller."""

    __slots__ = ("_back", "_began")

    def __init__(self) -> None:
        self._began: float | None = None
        self._back: float | None = None

    def lost(self, now: float) -> float:
        """The session was lost, or is not back yet; gives the time the trouble began."""
        steady = self._back is not None and not 0 <= now - self._back < STEADY_SECONDS
        if self._began is None or steady:
            self._began = now
        self._back = None
        return self._began

    def back(self, now: float) -> None:
        """The session that was lost goes on."""
        self._back = now

    def over(self) -> None:
        """There is a new session: what was before no longer counts."""
        self._began = self._back = None
