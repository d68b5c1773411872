"""What the relay counts: plain integers on the way of a call, Prometheus' text when somebody asks."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.core import Metric

BUCKETS = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
MAX_TOOLS = 256
"""Tools that are told apart; a server may change its list as often as it likes."""
OTHER = "other"

# Counter name -> (what it counts, the meaning of its label).
COUNTERS = {
    "mcp_relay_requests_refused": ("HTTP requests that were refused before any work", "reason"),
    "mcp_relay_messages_dropped": ("Messages that had nobody to go to, of the server or for it", "reason"),
    "mcp_relay_stdout_lines_dropped": ("Lines of the server's output that are no messages", "reason"),
    "mcp_relay_server_requests": ("Requests from the server to a client", "outcome"),
    "mcp_relay_streams_dropped": ("Event streams given up because the client read too slowly", "kind"),
    "mcp_relay_sessions_ended": ("Client sessions that ended", "reason"),
    "mcp_relay_processes_ended": ("Processes of clients that ended", "reason"),
    "mcp_relay_upstream_bytes": ("Bytes exchanged with the server process", "direction"),
    "mcp_relay_upstream_events": ("What happened to the session with the server process", "event"),
    "mcp_relay_audit_lines": ("Lines of the audit log", "outcome"),
    "mcp_relay_client_bytes": ("Bytes exchanged with clients over HTTP", "direction"),
}


class Metrics:
    """Counters of one relay; gauges are read when asked, from functions given at the start."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str, str]] = Counter()
        self.durations: dict[str, list[int]] = {}
        self.seconds: Counter[str] = Counter()
        self.counters: dict[str, Counter[str]] = {name: Counter() for name in COUNTERS}
        self.gauges: dict[str, tuple[str, dict[str, float]]] = {}
        self._tools: set[str] = set()

    def call(self, method: str, tool: str, outcome: str, seconds: float) -> None:
        """Count one finished call; `tool` is empty for what is no call of a known tool."""
        if tool not in self._tools and tool:
            tool = self._told_apart(tool)
        self.calls[(method, tool, outcome)] += 1
        buckets = self.durations.get(method)
        if buckets is None:
            buckets = self.durations[method] = [0] * (len(BUCKETS) + 1)
        buckets[bisect_left(BUCKETS, seconds)] += 1
        self.seconds[method] += seconds  # type: ignore[assignment]  # Counter is typed for integers only

    def _told_apart(self, tool: str) -> str:
        if len(self._tools) >= MAX_TOOLS:
            return OTHER
        self._tools.add(tool)
        return tool

    def count(self, name: str, label: str, amount: int = 1) -> None:
        """Count something that has a name in `COUNTERS`."""
        self.counters[name][label] += amount

    def gauge(self, name: str, text: str, values: dict[str, float]) -> None:
        """Set a gauge; the key of `values` is its label, empty for none."""
        self.gauges[name] = (text, values)

    def render(self) -> tuple[bytes, bytes]:
        """The text for Prometheus and its content type."""
        # Imported here: it costs 2 MiB and 40 ms that only relays with a scraper should pay.
        from prometheus_client import CollectorRegistry, ProcessCollector, exposition, registry

        class Source(registry.Collector):
            def collect(_self) -> "Iterable[Metric]":  # noqa: N805 - `self` is the enclosing object's
                return self._families()

        wanted = CollectorRegistry()
        wanted.register(Source())
        ProcessCollector(registry=wanted)
        return exposition.generate_latest(wanted), exposition.CONTENT_TYPE_LATEST.encode()

    def _families(self) -> "Iterator[Metric]":
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        labels = ("method", "tool", "outcome")
        calls = CounterMetricFamily("mcp_relay_calls", "Requests of clients", labels=labels)
        for key, number in self.calls.items():
            calls.add_metric(key, number)
        yield calls
        durations = HistogramMetricFamily(
            "mcp_relay_call_duration_seconds", "From a client's request to its answer", labels=("method",)
        )
        for method, buckets in self.durations.items():
            durations.add_metric((method,), _cumulative(buckets), self.seconds[method])
        yield durations
        for name, (text, label) in COUNTERS.items():
            family = CounterMetricFamily(name, text, labels=(label,))
            for value, number in self.counters[name].items():
                family.add_metric((value,), number)
            yield family
        for name, (text, values) in self.gauges.items():
            gauge = GaugeMetricFamily(name, text, labels=("state",) if "" not in values else ())
            for value, level in values.items():
                gauge.add_metric((value,) if value else (), level)
            yield gauge


def _cumulative(buckets: list[int]) -> list[tuple[str, float]]:
    total, rows = 0, []
    for bound, number in zip((*map(str, BUCKETS), "+Inf"), buckets, strict=True):
        total += number
        rows.append((bound, float(total)))
    return rows
