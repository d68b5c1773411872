"""Prometheus metrics of the operator. docs/operations.md lists them; a test compares."""

from collections import Counter as Tally
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from mcp_operator.core.api import Phase
from mcp_operator.core.api.status import ServerError
from mcp_operator.core.plan import Plan

METRICS_PATH: Final = "/metrics"
CONTENT_TYPE: Final = CONTENT_TYPE_LATEST


@dataclass(frozen=True)
class Standing:
    """How one MCPServer stands, as its status says."""

    phase: str
    next_attempt: datetime | None = None


class Metrics:
    """All collectors, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reconcile_seconds = Histogram(
            "mcp_operator_reconcile_seconds",
            "Time of one reconcile, with all its requests to the API server",
            registry=self.registry,
            buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2, 10),
        )
        self.reconcile_errors = self._counter(
            "reconcile_errors", "Reconciles that failed and are tried again", "error"
        )
        self.status_writes = self._counter("status_writes", "Writes of the status of a resource")
        self.recoveries = self._counter(
            "recoveries", "What was done about servers: Create, Recreate or Reconnect", "action", "reason"
        )
        self.failures = self._counter(
            "failures", "Failures of servers that cost a retry, by their error", "phase", "reason"
        )
        self.events = self._counter("watch_events", "Events that the watches delivered", "kind")

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"mcp_operator_{name}", meaning, labels, registry=self.registry)

    def did(self, plan: Plan) -> None:
        """Count what a plan did, if it did anything."""
        if plan.create_epoch is not None or plan.reconnect:
            self.recoveries.labels(plan.action.value, plan.reason.value).inc()

    def failed(self, error: ServerError) -> None:
        """Count a failure that cost a retry."""
        self.failures.labels(error.phase.value, error.reason).inc()

    def show(self, standings: Callable[[], Iterable[Standing]], clock: Callable[[], datetime]) -> None:
        """Report how all resources stand, counted when asked."""
        self.registry.register(_Standings(standings, clock))

    def text(self) -> bytes:
        """All metrics in the text format, of type CONTENT_TYPE."""
        return generate_latest(self.registry)


class _Standings(Collector):
    def __init__(self, standings: Callable[[], Iterable[Standing]], clock: Callable[[], datetime]) -> None:
        self._standings = standings
        self._clock = clock

    def collect(self) -> Iterable[Metric]:
        found = list(self._standings())
        servers = GaugeMetricFamily("mcp_operator_servers", "Resources by phase", labels=["phase"])
        tally = Tally(standing.phase for standing in found)
        for phase in Phase:
            servers.add_metric([phase.value], tally.get(phase.value, 0))
        yield servers
        moments = [standing.next_attempt for standing in found if standing.next_attempt is not None]
        yield GaugeMetricFamily(
            "mcp_operator_backoff_servers", "Resources that wait for their next attempt", value=len(moments)
        )
        longest = max(((moment - self._clock()).total_seconds() for moment in moments), default=0.0)
        yield GaugeMetricFamily(
            "mcp_operator_backoff_seconds",
            "Longest time until a next attempt, 0 while none waits; below 0: it is overdue",
            value=longest,
        )
