"""Prometheus metrics of the operator."""

from collections import Counter as Tally
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from mcp_operator.core.api import Phase
from mcp_operator.core.plan import Plan


class Metrics:
    """All collectors, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reconcile_seconds = Histogram(
            "mcp_operator_reconcile_seconds",
            "Time of one reconcile",
            registry=self.registry,
            buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2, 10),
        )
        self.reconcile_errors = Counter(
            "mcp_operator_reconcile_errors", "Reconciles that failed", ["error"], registry=self.registry
        )
        self.status_writes = Counter(
            "mcp_operator_status_writes", "Writes of the status of a resource", registry=self.registry
        )
        self.actions = Counter(
            "mcp_operator_actions",
            "What was done about servers",
            ["action", "reason"],
            registry=self.registry,
        )
        self.events = Counter(
            "mcp_operator_watch_events", "Events that the watches delivered", ["kind"], registry=self.registry
        )

    def did(self, plan: Plan) -> None:
        """Count what a plan did, if it did anything."""
        if plan.create_epoch is not None or plan.reconnect:
            self.actions.labels(plan.action.value, plan.reason.value).inc()

    def show_phases(self, phases: Callable[[], Iterable[str]]) -> None:
        """Report how many resources are in each phase, counted when asked."""
        self.registry.register(_Phases(phases))

    def serve(self, port: int) -> Callable[[], None]:
        """Serve them at `/metrics`, from a thread of their own; returns what ends that."""
        server, thread = start_http_server(port, registry=self.registry)

        def close() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return close


class _Phases(Collector):
    def __init__(self, phases: Callable[[], Iterable[str]]) -> None:
        self._phases = phases

    def collect(self) -> Iterable[Metric]:
        gauge = GaugeMetricFamily("mcp_operator_servers", "Resources by phase", labels=["phase"])
        tally = Tally(self._phases())
        for phase in Phase:
            gauge.add_metric([phase.value], tally.get(phase.value, 0))
        yield gauge
