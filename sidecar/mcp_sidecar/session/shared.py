"""What the two directions of the relay have in common."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mcp_sidecar.core.cancels import EarlyCancels
from mcp_sidecar.core.interests import Interests
from mcp_sidecar.metrics import Metrics
from mcp_sidecar.session.board import Board
from mcp_sidecar.session.clients import Client, Clients
from mcp_sidecar.session.store import Store
from mcp_sidecar.session.table import CallTable
from mcp_sidecar.settings import Settings


@dataclass(slots=True)
class Asked:
    """A request of the server that was passed to a client."""

    client: Client
    id: Any
    raw_id: bytes


@dataclass(slots=True)
class Shared:
    """The parts of one relay. `send` writes a frame to the server; False when nothing is connected."""

    settings: Settings
    metrics: Metrics
    store: Store
    table: CallTable
    clients: Clients
    board: Board
    send: Callable[[bytes], bool] = lambda _frame: False
    say: Callable[[bytes], None] = lambda _frame: None
    """Writes a frame that must not get lost: it waits while the connection is made again."""
    interests: Interests = field(default_factory=Interests)
    early: EarlyCancels = field(default_factory=EarlyCancels)
    asked: dict[int, Asked] = field(default_factory=dict)
    revision: str = ""
    """Revision negotiated with the server."""
    capabilities: dict[str, Any] = field(default_factory=dict)
    """Capabilities the server declared."""
    level: str | None = None
    """The log level the server was set to."""

    def save_interests(self) -> None:
        """Keep subscriptions and log levels over a restart of the relay."""
        self.store.save_interests({**self.interests.dump(), "level": self.level})
