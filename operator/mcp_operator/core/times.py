"""Times of the API server (RFC 3339) and of relays (Unix seconds) as aware datetimes."""

from datetime import UTC, datetime


def parse(value: str | None) -> datetime | None:
    """Read `2026-01-31T12:00:00Z`; None stays None. Raises ValueError on anything else."""
    return None if not value else datetime.fromisoformat(value).astimezone(UTC)


def since(seconds: float, now: datetime) -> datetime:
    """A moment in Unix seconds that lies behind us: clocks of other machines may be ahead."""
    return min(datetime.fromtimestamp(seconds, tz=UTC), now)
