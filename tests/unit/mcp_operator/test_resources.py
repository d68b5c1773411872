"""What containers may use: completed from defaults, in Kubernetes' quantities."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mcp_operator.core import quantity
from mcp_operator.core.api import MCPServerSpec
from mcp_operator.manifests import pod, resources
from mcp_operator.manifests.identity import Owner
from mcp_operator.settings import Settings

Json = dict[str, Any]


def relay(settings: Settings) -> Json:
    """The resources of a relay in a pod."""
    template = pod.template(
        Owner("time", "default", "uid-1"), MCPServerSpec.parse({"command": ["x"]}), settings
    )
    made: Json = template["spec"]["initContainers"][0]["resources"]
    return made


@pytest.mark.parametrize(
    ("wanted", "requests", "limits"),
    [
        (None, resources.SERVER_REQUESTS, resources.SERVER_LIMITS),
        ({"limits": {"memory": "64Mi"}}, {"memory": "64Mi", "cpu": "100m"}, {"memory": "64Mi", "cpu": "1"}),
        ({"requests": {"memory": "2Gi"}}, {"memory": "2Gi"}, {"memory": "2Gi"}),
        ({"requests": {"cpu": 4}}, {"cpu": 4}, {"cpu": 4}),
        ({"limits": {"example.com/gpu": "1"}}, {"cpu": "100m"}, {"example.com/gpu": "1", "memory": "512Mi"}),
    ],
    ids=str,
)
def test_resources_are_completed_key_by_key(wanted: Json | None, requests: Json, limits: Json) -> None:
    made = resources.server(wanted)
    assert requests.items() <= made["requests"].items()
    assert limits.items() <= made["limits"].items()


AMOUNT = st.one_of(
    st.builds("{}{}".format, st.integers(1, 4096), st.sampled_from(["m", "", "k", "Mi", "Gi", "M", "e3"])),
    st.integers(1, 64),
)
ASKED = st.dictionaries(st.sampled_from(["cpu", "memory", "ephemeral-storage"]), AMOUNT)


@given(ASKED, ASKED)
def test_no_completed_request_exceeds_its_limit(requests: Json, limits: Json) -> None:
    made = resources.server({"requests": requests, "limits": limits})
    for key in ("cpu", "memory", "ephemeral-storage"):
        if key in requests and key in limits:
            continue
        assert quantity.parse(made["requests"][key]) <= quantity.parse(made["limits"][key])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("100m", "0.1"),
        ("1.5", "1.5"),
        ("1Ki", "1024"),
        ("1e3", "1000"),
        ("2E", "2e18"),
        (3, "3"),
        ("1E2", "100"),
    ],
)
def test_quantities_are_read(text: Any, value: str) -> None:
    assert quantity.parse(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "x", "1Zi", "1 2", "--1", "1mm"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="quantity"):
        quantity.parse(text)


def test_a_relay_has_the_resources_that_the_operator_is_told_and_defaults_for_the_rest() -> None:
    assert relay(Settings()) == {"requests": resources.RELAY_REQUESTS, "limits": resources.RELAY_LIMITS}
    made = relay(Settings(relay_resources={"limits": {"memory": "32Mi"}}))
    assert made["limits"] == {**resources.RELAY_LIMITS, "memory": "32Mi"}
    assert made["requests"]["memory"] == "32Mi"


def test_the_chart_shows_the_defaults_of_a_relays_resources() -> None:
    chart = yaml.safe_load((Path(__file__).parents[3] / "helm/values.yaml").read_text(encoding="utf-8"))
    assert resources.relay(chart["relay"]["resources"]) == resources.relay({}) == chart["relay"]["resources"]
