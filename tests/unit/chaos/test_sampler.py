"""Whether answers come from a pod on its way out, and when the sampler itself was not run."""

import asyncio
import time
from typing import Any, cast

import pytest

from chaoskit.load import Ledger
from chaoskit.sampler import STALL_SECONDS, Sampler, is_going
from chaoskit.truth import INTERVAL
from chaoskit.world import World


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


class Blind(Sampler):
    """Looks at nothing."""

    async def _look(self, at: float) -> None:
        pass


async def test_a_time_in_which_the_suite_was_not_run_is_noted_from_the_look_before() -> None:
    sampler = Blind(cast("World", None), Ledger())
    running = asyncio.create_task(sampler.run())
    await asyncio.sleep(0)
    began = time.monotonic()
    time.sleep(STALL_SECONDS + 2 * INTERVAL)  # noqa: ASYNC251 - it is meant to stop everything
    ended = time.monotonic()
    async with asyncio.timeout(20):
        while not sampler.stalls:  # noqa: ASYNC110 - the sampler tells nobody else
            await asyncio.sleep(0.01)
    assert sampler.stalls[0].start <= began
    assert sampler.stalls[0].end >= ended
    running.cancel()
