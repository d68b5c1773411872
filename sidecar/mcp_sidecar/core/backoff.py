"""When to try the launcher's socket again, as data."""

from collections.abc import Sequence

# At start the socket appears as soon as the server's container runs: short steps cost nothing and save time.
FIRST_CONTACT: Sequence[float] = (0.02, 0.02, 0.03, 0.05, 0.05, 0.1, 0.1, 0.2, 0.3, 0.5)
# After a drop: once at once, because a refusal tells that the launcher is gone; then in peace.
AFTER_DROP: Sequence[float] = (0.05, 1.0)


def delay(steps: Sequence[float], attempt: int) -> float:
    """Seconds to wait before the given attempt (counted from 0); the last step repeats."""
    return steps[min(attempt, len(steps) - 1)]
