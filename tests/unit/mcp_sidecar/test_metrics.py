import re
from pathlib import Path
from typing import Any

import pytest

from mcp_sidecar.core import frames
from mcp_sidecar.core.document import Tools
from mcp_sidecar.metrics import COUNTERS, MAX_TOOLS, Metrics
from mcp_sidecar.session.calls import Call
from mcp_sidecar.session.relay import Relay
from mcp_sidecar.settings import Settings

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
_ROW = re.compile(r"\| `(mcp_relay_\w+?)(?:\{([\w,]+)\})?` \| (\w+) \|")
_SAMPLE = re.compile(r"(mcp_relay_\w+?)(?:\{(.*)\})? [\d.e+]+", re.ASCII)


@pytest.fixture
async def relay(tmp_path: Path) -> Relay:
    return Relay(
        Settings(
            server_name="demo", server_uid="u", signing_key=b"k", token=None, admin_token=b"a",
            socket_path="-", state_dir=tmp_path,
        )
    )  # fmt: skip


def finish(relay: Relay, outcome: str = "ok", **params: Any) -> None:
    """One call that ended."""
    client = relay.shared.clients.open({}, "s")
    message = frames.request(1, params.pop("method", "tools/call"), params)
    call = Call(client, frames.parse(message), relay._loop.time(), sse=True)
    call.finish((b"{}",), outcome)
    relay.finished(call)


def lines(relay: Relay) -> list[str]:
    relay.observe()
    return relay.metrics.render()[0].decode().splitlines()


def test_metrics_have_names_units_and_labels() -> None:
    metrics = Metrics()
    metrics.call("tools/call", "echo", "ok", 0.003)
    metrics.call("tools/call", "echo", "ok", 9999.0)
    metrics.count("mcp_relay_stdout_lines_dropped", "noise", 2)
    metrics.gauge("mcp_relay_clients", "Client sessions", {"": 3})
    text, kind = metrics.render()
    found = text.decode().splitlines()
    assert 'mcp_relay_calls_total{method="tools/call",outcome="ok",tool="echo"} 2.0' in found
    assert 'mcp_relay_call_duration_seconds_bucket{le="0.005",method="tools/call"} 1.0' in found
    assert 'mcp_relay_call_duration_seconds_bucket{le="+Inf",method="tools/call"} 2.0' in found
    assert 'mcp_relay_call_duration_seconds_count{method="tools/call"} 2.0' in found
    assert 'mcp_relay_stdout_lines_dropped_total{reason="noise"} 2.0' in found
    assert "mcp_relay_clients 3.0" in found
    assert kind.startswith(b"text/plain")


async def test_the_page_lists_every_metric_with_its_labels_and_nothing_else(relay: Relay) -> None:
    for name in COUNTERS:
        relay.metrics.count(name, "x")
    finish(relay, name="x")
    listed = {
        name: (set(filter(None, labels.split(","))), kind)
        for name, labels, kind in _ROW.findall(PAGE.read_text())
    }
    kinds = dict(line.split()[2:] for line in lines(relay) if line.startswith("# TYPE mcp_relay_"))
    served: dict[str, tuple[set[str], str]] = {}
    for name, labels in filter(None, (m and m.groups() for m in map(_SAMPLE.fullmatch, lines(relay)))):
        family = next((f for f in kinds if name in (f + "_bucket", f + "_sum", f + "_count")), name)
        if not name.endswith("_created"):
            found = set(re.findall(r'(\w+)="', labels or "")) - {"le"}
            served[family] = (found, kinds[family])
    assert served == listed


async def test_tools_are_told_apart_only_if_the_server_has_them(relay: Relay) -> None:
    relay.shared.board.update(tools=Tools(2, "d", ({"name": "echo"}, {"name": "add"})))
    for name in ("echo", "echo", "add", "made up", "", None):
        finish(relay, name=name)
    finish(relay, "timeout", name="echo")
    finish(relay, method="prompts/get", name="echo")
    finish(relay, method="vendor/x", name="echo")
    assert dict(relay.metrics.calls) == {
        ("tools/call", "echo", "ok"): 2,
        ("tools/call", "add", "ok"): 1,
        ("tools/call", "other", "ok"): 3,
        ("tools/call", "echo", "timeout"): 1,
        ("prompts/get", "", "ok"): 1,
        ("other", "", "ok"): 1,
    }


async def test_a_server_whose_tools_change_for_ever_makes_a_bounded_number_of_series(relay: Relay) -> None:
    for number in range(MAX_TOOLS + 50):
        relay.shared.board.update(tools=Tools(1, str(number), ({"name": f"tool{number}"},)))
        finish(relay, name=f"tool{number}")
    assert len(relay.metrics.calls) == MAX_TOOLS + 1
    assert relay.metrics.calls[("tools/call", "other", "ok")] == 50


async def test_starts_of_the_relay_and_handshakes_are_counted_over_its_restarts(relay: Relay) -> None:
    relay.shared.store.begin("process", 1)
    again = Relay(relay.settings)
    found = lines(again)
    assert 'mcp_relay_upstream_events_total{event="relay_start"} 2.0' in found
    assert 'mcp_relay_upstream_events_total{event="handshake"} 1.0' in found


async def test_what_waits_is_counted(relay: Relay) -> None:
    client = relay.shared.clients.open({}, "s")
    stream = relay.open_stream(client)
    for _ in range(3):
        stream.put((b"news",))
    relay.shared.say(b"{}")
    found = lines(relay)
    assert "mcp_relay_streams 1.0" in found
    assert "mcp_relay_events_queued 3.0" in found
    assert "mcp_relay_upstream_backlog 1.0" in found
    assert 'mcp_relay_upstream_state{state="Connecting"} 1.0' in found
