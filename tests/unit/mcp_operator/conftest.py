"""A healthy world for the decision tests; each of them changes what it is about."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mcp_operator.core.api import ErrorPhase, MCPServerSpec, MCPServerStatus
from mcp_operator.core.api.status import RecoveryStatus, SessionStatus
from mcp_operator.core.decide import decide
from mcp_operator.core.observation import ContainerFacts, ContainerState, Observation, PodFacts, RelayView
from mcp_relay_api.status import RelayStatus

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
HASH = "spec.refs"


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


@dataclass(frozen=True)
class World:
    """Makers of facts; all of them describe a server that has been connected for a minute."""

    now: datetime = NOW
    config_hash: str = HASH

    def ago(self, seconds: float) -> datetime:
        return ago(seconds)

    def later(self, seconds: float) -> datetime:
        return ago(-seconds)

    def running(self, seconds: float = 60) -> ContainerFacts:
        return ContainerFacts(ContainerState.RUNNING, started_at=ago(seconds))

    def waiting(self, reason: str, message: str = "") -> ContainerFacts:
        return ContainerFacts(ContainerState.WAITING, reason=reason, message=message)

    def terminated(self, code: int, reason: str = "", message: str = "") -> ContainerFacts:
        return ContainerFacts(
            ContainerState.TERMINATED, reason=reason, message=message, exit_code=code, finished_at=ago(1)
        )

    def pod(self, **changes: Any) -> PodFacts:
        healthy = PodFacts(
            name="mcp-time-1",
            uid="pod-1",
            epoch=1,
            config_hash=HASH,
            phase="Running",
            ip="10.0.0.1",
            scheduled=True,
            ready=True,
            created_at=ago(61),
            server=self.running(),
            relay=self.running(),
        )
        return replace(healthy, **changes)

    def pending(self, server: ContainerFacts | None = None, **changes: Any) -> PodFacts:
        relay = self.running() if server is not None else ContainerFacts()
        fresh = {"phase": "Pending", "ready": False, "ip": None, "created_at": ago(1)}
        return self.pod(**{**fresh, "relay": relay, "server": server or ContainerFacts(), **changes})

    def report(self, **changes: Any) -> RelayStatus:
        document = {
            "instance": "one",
            "revision": 3,
            "state": "Connected",
            "since": ago(60).timestamp(),
            "process": {"incarnation": "abc", "pid": 7, "startTime": ago(60).timestamp()},
            "session": {
                "protocolVersion": "2025-11-25",
                "serverInfo": {"name": "time", "version": "1.0"},
                "capabilities": {"tools": {"listChanged": True}},
                "since": ago(60).timestamp(),
                "adopted": False,
            },
            "handshakes": 1,
            "clients": 2,
            "toolCount": 1,
            "toolsDigest": "sha256:1",
            "tools": [{"name": "now", "description": "Tells the time"}],
        }
        return RelayStatus.model_validate({**document, **changes})

    def connecting(self, seconds: float = 1, **changes: Any) -> RelayView:
        empty: dict[str, Any] = {"session": None, "toolCount": None, "toolsDigest": None, "tools": []}
        since = ago(seconds).timestamp()
        return RelayView(self.report(**{**empty, "state": "Connecting", "since": since, **changes}))

    def status(self, **recovery: Any) -> MCPServerStatus:
        epoch = recovery.pop("epoch", 1)
        error = recovery.pop("error", None)
        pod_uid = recovery.pop("pod_uid", None)
        return MCPServerStatus(
            observed_generation=1,
            phase=recovery.pop("phase", None),
            error=error,
            recovery=RecoveryStatus(**{"config_hash": HASH, **recovery}),
            session=SessionStatus(epoch=epoch, pod_uid=pod_uid),
        )

    def spec(self, **fields: Any) -> MCPServerSpec:
        return MCPServerSpec.parse({"command": ["uvx", "mcp-server-time"], **fields})

    def seen(self, **changes: Any) -> Observation:
        healthy = Observation(
            now=NOW,
            name="time",
            namespace="default",
            generation=1,
            spec=self.spec(),
            status=self.status(),
            config_hash=HASH,
            pods=(self.pod(),),
            relay=RelayView(self.report()),
        )
        return replace(healthy, **changes)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def decided(world: World) -> Callable[[Callable[[World], dict[str, Any]], str, ErrorPhase | None], None]:
    """Checks one row of the table; the same facts must give the same plan again."""

    def check(change: Callable[[World], dict[str, Any]], expected: str, error: ErrorPhase | None) -> None:
        seen = world.seen(**change(world))
        plan = decide(seen)
        assert str(plan) == expected
        assert (plan.failure.phase if plan.failure else None) == error
        assert decide(seen) == plan

    return check
