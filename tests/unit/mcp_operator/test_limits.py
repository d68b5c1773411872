"""A LimitRange's refusal: container, field and cure."""

from typing import Any

import pytest

from mcp_operator.core import limits
from mcp_operator.core.api import MCPServerSpec
from mcp_operator.core.decide import decide
from mcp_operator.core.refusal import Refusal, refused
from mcp_operator.manifests import resources

SERVER, RELAY = resources.server(None), resources.relay({})
BOTH = {"server": SERVER, "relay": RELAY}
REFUSED = 'pods "mcp-time-1" is forbidden: '


@pytest.mark.parametrize(
    ("message", "cure"),
    [
        (
            "maximum memory usage per Container is 300Mi, but limit is 512Mi",
            (
                'container "server": its memory limit 512Mi is above the LimitRange\'s maximum 300Mi: '
                "set spec.resources.limits.memory to at most 300Mi"
            ),
        ),
        (
            "maximum memory usage per Container is 128Mi, but limit is 268435456",
            (
                'container "relay": its memory limit 268435456 is above the LimitRange\'s maximum 128Mi: '
                "set the chart's value relay.resources.limits.memory to at most 128Mi"
            ),
        ),
        (
            "minimum cpu usage per Container is 75m, but request is 50m",
            (
                'container "relay": its cpu request 50m is below the LimitRange\'s minimum 75m: '
                "set the chart's value relay.resources.requests.cpu to at least 75m"
            ),
        ),
        (
            (
                "[maximum memory usage per Container is 128Mi, but limit is 512Mi, "
                "maximum memory usage per Container is 128Mi, but limit is 256Mi]"
            ),
            (
                'container "server": its memory limit 512Mi is above the LimitRange\'s maximum 128Mi: '
                "set spec.resources.limits.memory to at most 128Mi; "
                'container "relay": its memory limit 256Mi is above the LimitRange\'s maximum 128Mi: '
                "set the chart's value relay.resources.limits.memory to at most 128Mi"
            ),
        ),
        (
            "memory max limit to request ratio per Container is 3, but provided ratio is 4.000000",
            (
                'container "server": the LimitRange forbids a memory limit of more than 3 times the request: '
                "raise spec.resources.requests.memory or lower the limit; "
                'container "relay": the LimitRange forbids a memory limit of more than 3 times the request: '
                "raise the chart's value relay.resources.requests.memory or lower the limit"
            ),
        ),
        (
            "maximum memory usage per Pod is 600Mi, but limit is 805306368",
            (
                "the containers' memory limits together, 805306368, are above the LimitRange's maximum for "
                "a pod, 600Mi: change spec.resources.limits.memory and the chart's value "
                "relay.resources.limits.memory"
            ),
        ),
        ("maximum memory usage per Container is 1Mi, but limit is 3Mi", ""),
        ("exceeded quota: compute, requested: limits.memory=1Gi", ""),
    ],
)
def test_the_container_and_the_field_are_found_by_the_value(message: str, cure: str) -> None:
    assert limits.cure(REFUSED + message, BOTH) == cure


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("maximum memory usage per Container is 300Mi, but limit is 512Mi", "LimitRangeExceeded"),
        ("memory max limit to request ratio per Pod is 3, but provided ratio is 4.0", "LimitRangeExceeded"),
        ("exceeded quota: compute, requested: limits.memory=1Gi", "QuotaExceeded"),
        ("failed quota: compute: must specify limits.cpu for: server", "QuotaExceeded"),
        ("violates PodSecurity: runAsUser=0, the maximum of caution", "AdmissionRefused"),
    ],
)
def test_a_quota_and_a_limit_range_are_told_apart(world: Any, message: str, reason: str) -> None:
    seen = world.seen(pods=())
    plan = refused(seen, decide(seen), Refusal(403, REFUSED + message, cure="change it"))
    assert plan.failure is not None
    assert plan.failure.reason == reason
    assert plan.failure.message.startswith("the API server refused the pod: change it (pods")


def test_the_defaults_that_the_field_describes_are_the_ones_that_are_used() -> None:
    told = " ".join((MCPServerSpec.model_fields["resources"].description or "").split())
    for part, made in (("requests", SERVER), ("limits", SERVER), ("requests", RELAY), ("limits", RELAY)):
        cpu, memory, storage = (made[part][key] for key in ("cpu", "memory", "ephemeral-storage"))
        assert f"{part} {cpu} CPU, {memory} memory, {storage} ephemeral-storage" in told
