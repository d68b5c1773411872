"""Random inputs of the unit tests: on a machine under load it takes long to make some, which is no fault."""

from hypothesis import HealthCheck, settings

settings.register_profile("unit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unit")
