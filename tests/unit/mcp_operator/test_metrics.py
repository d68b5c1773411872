"""The operator's metrics: what they count, where they are served, and that the page lists them all."""

import asyncio
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mcp_operator import main
from mcp_operator.adapters.errors import RefusedError
from mcp_operator.adapters.kinds import SERVERS
from mcp_operator.core.decide import decide
from mcp_operator.core.observation import RelayView
from mcp_operator.handlers import pages
from mcp_operator.handlers.workqueue import WorkQueue
from mcp_operator.metrics import Metrics, Standing
from mcp_operator.settings import Settings

KEY = ("default", "time")
PAGE = Path(__file__).parents[3] / "docs/operations.md"
# A reconciler against an API server in memory, from conftest.
Setup = Any


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"mcp_operator_{name}", labels)


def shown(world: Any, *standings: Standing) -> Metrics:
    metrics = Metrics()
    metrics.show(lambda: standings, lambda: world.now)
    return metrics


def test_servers_are_counted_by_phase_and_absent_phases_are_zero(world: Any) -> None:
    metrics = shown(world, Standing("Connected"), Standing("Connected"), Standing("Error"))
    assert value(metrics, "servers", phase="Connected") == 2
    assert value(metrics, "servers", phase="Error") == 1
    assert value(metrics, "servers", phase="Suspended") == 0


def test_servers_that_wait_for_an_attempt_are_counted_with_the_longest_wait(world: Any) -> None:
    later = [Standing("Recreating", world.now + timedelta(seconds=seconds)) for seconds in (2, 300)]
    metrics = shown(world, *later, Standing("Connected"))
    assert value(metrics, "backoff_servers") == 2
    assert value(metrics, "backoff_seconds") == 300
    assert value(shown(world), "backoff_seconds") == 0


@pytest.mark.parametrize(
    ("change", "labels"),
    [
        (lambda w: {"pods": ()}, {"action": "Create", "reason": "Created"}),
        (
            lambda w: {"config_hash": "spec.other"},
            {"action": "Recreate", "reason": "ConfigurationChanged"},
        ),
        (
            lambda w: {"relay": RelayView(w.report(), failures=3)},
            {"action": "Reconnect", "reason": "RelayUnreachable"},
        ),
    ],
)
def test_recoveries_are_counted_by_action_and_reason(world: Any, change: Any, labels: dict[str, str]) -> None:
    metrics = Metrics()
    metrics.did(decide(world.seen(**change(world))))
    metrics.did(decide(world.seen()))
    assert value(metrics, "recoveries_total", **labels) == 1


async def test_a_failure_is_counted_once_and_a_reconcile_timed_each_time(setup: Setup) -> None:
    metrics: Metrics = setup.reconcile._metrics
    setup.server()
    setup.kube.errors["create pods"] = RefusedError(403, "exceeded quota: memory")
    await setup.reconcile(KEY)
    await setup.reconcile(KEY)
    assert value(metrics, "failures_total", phase="Admission", reason="QuotaExceeded") == 1
    assert value(metrics, "reconcile_seconds_count") == 2
    assert value(metrics, "status_writes_total") == 1


async def test_errors_of_reconciles_are_counted_by_kind() -> None:
    operator = main.Operator(Any, Settings())  # type: ignore[arg-type]  # nothing is asked of the API server

    async def broken(key: tuple[str, str]) -> float | None:
        raise ZeroDivisionError

    failed = asyncio.Event()

    def told(key: tuple[str, str], error: Exception, delay: float) -> None:
        operator._failed(key, error, delay)
        failed.set()

    queue = WorkQueue(broken, 1, told)
    queue.wake(KEY)
    await asyncio.wait_for(failed.wait(), 5)
    await queue.close()
    assert value(operator.metrics, "reconcile_errors_total", error="ZeroDivisionError") == 1


async def test_the_status_of_each_resource_is_what_is_shown(setup: Setup) -> None:
    setup.server()
    setup.kube.errors["create pods"] = RefusedError(403, "exceeded quota: memory")
    await setup.reconcile(KEY)
    (standing,) = setup.reconcile.standings()
    assert standing == Standing("Recreating", setup.now + timedelta(seconds=2))
    assert [key for key, _ in setup.cache.items(SERVERS)] == [KEY]


@pytest.mark.parametrize(("path", "status"), [("/metrics", b"200"), ("/metrics?x=1", b"200"), ("/", b"404")])
async def test_metrics_are_served_at_their_path_alone(path: str, status: bytes, unused_tcp_port: int) -> None:
    operator = main.Operator(Any, Settings())  # type: ignore[arg-type]  # nothing is asked of the API server
    async with pages.served(unused_tcp_port, operator.pages()):
        reader, writer = await asyncio.open_connection("127.0.0.1", unused_tcp_port)
        writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
        answer = await asyncio.wait_for(reader.read(), 5)
        writer.close()
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert (b"mcp_operator_servers" in answer) is (status == b"200")


def test_the_page_on_operations_lists_every_metric_and_no_other(world: Any) -> None:
    families = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in shown(world).registry.collect()
    }
    listed = set(re.findall(r"^\| `(mcp_operator_\w+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert listed == families
