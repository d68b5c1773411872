"""How many stories: `--hypothesis-profile=long` for the long run."""

from hypothesis import HealthCheck, settings

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "short", max_examples=300, deadline=None, derandomize=True, suppress_health_check=QUIET
)
settings.register_profile("long", max_examples=10_000, deadline=None, suppress_health_check=QUIET)
settings.load_profile("short")
