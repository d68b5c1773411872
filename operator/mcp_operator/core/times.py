"""RFC 3339 times of the API server as aware datetimes."""

from datetime import UTC, datetime


def parse(value: str | None) -> datetime | None:
    """Read `2026-01-31T12:00:00Z`; None stays None. Raises ValueError on anything else."""
    return None if not value else datetime.fromisoformat(value).astimezone(UTC)
