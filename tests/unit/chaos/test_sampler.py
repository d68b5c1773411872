"""Whether answers come from a pod on its way out."""

from typing import Any

import pytest

from chaoskit.sampler import is_going


def pod(epoch: int, *, ready: bool, deleting: bool = False) -> dict[str, Any]:
    meta = {"name": f"mcp-raw-{epoch}", **({"deletionTimestamp": "now"} if deleting else {})}
    return {
        "metadata": meta,
        "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


@pytest.mark.parametrize(
    ("pods", "going"),
    [
        ([], True),
        ([pod(1, ready=True)], False),
        ([pod(1, ready=False)], False),
        ([pod(1, ready=True, deleting=True)], True),
        ([pod(9, ready=True, deleting=True), pod(10, ready=False)], True),
        ([pod(9, ready=True, deleting=True), pod(10, ready=True)], False),
        ([pod(9, ready=False), pod(10, ready=True)], False),
    ],
)
def test_answers_come_from_a_pod_on_its_way_out(pods: list[dict[str, Any]], going: bool) -> None:
    assert is_going(pods) is going
