"""How soon the tool list is read again: at once after a single change, ever later when they keep coming."""

FIRST_SECONDS = 0.1
LAST_SECONDS = 30.0
CALM_SECONDS = 60.0
# After a failure, without a word of the server.
RETRY_FIRST_SECONDS = 5.0
RETRY_LAST_SECONDS = 300.0


class Pace:
    """Times are any steady clock's, in seconds."""

    __slots__ = ("_failures", "_pause", "_read")

    def __init__(self) -> None:
        self._read: float | None = None
        self._pause = 0.0
        self._failures = 0

    def began(self, now: float) -> None:
        """A reading begins."""
        calm = self._read is None or now - self._read > self._pause + CALM_SECONDS
        self._pause = FIRST_SECONDS if calm else min(2 * self._pause, LAST_SECONDS)
        self._read = now

    def wait(self, now: float) -> float:
        """Seconds that a reading wanted now has to wait."""
        return 0.0 if self._read is None else max(0.0, self._read + self._pause - now)

    def ended(self, *, failed: bool) -> float | None:
        """A reading ended; gives the seconds after which to try again by itself, None for never."""
        self._failures = self._failures + 1 if failed else 0
        if not failed:
            return None
        return float(min(RETRY_FIRST_SECONDS * 2 ** (self._failures - 1), RETRY_LAST_SECONDS))
