"""How many stories: `--hypothesis-profile=long` for the long run."""

import logging
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "short", max_examples=300, deadline=None, derandomize=True, suppress_health_check=QUIET
)
settings.register_profile("long", max_examples=10_000, deadline=None, suppress_health_check=QUIET)
settings.load_profile("short")


@pytest.fixture(autouse=True)
def _no_defects() -> Iterator[None]:
    """Whatever the relay logs as a defect of its own is one; of all else there would be too much to keep."""
    seen: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(logging.Formatter().format(record))

    logger, handler, level = logging.getLogger("mcp_sidecar"), Keep(), logging.getLogger("mcp_sidecar").level
    logger.addHandler(handler)
    logger.setLevel(logging.ERROR)
    yield
    logger.removeHandler(handler)
    logger.setLevel(level)
    assert seen == []
