"""What the two directions of the relay have in common."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mcp_sidecar.core import frames, handshake
from mcp_sidecar.core.cancels import EarlyCancels
from mcp_sidecar.core.interests import Interests
from mcp_sidecar.core.modern import envelope
from mcp_sidecar.core.modern.headers import Param
from mcp_sidecar.core.toolfilter import ToolFilter
from mcp_sidecar.metrics import Metrics
from mcp_sidecar.session.board import Board
from mcp_sidecar.session.calls import RefusedError
from mcp_sidecar.session.clients import Client, Clients
from mcp_sidecar.session.store import Store
from mcp_sidecar.session.table import CallTable
from mcp_sidecar.settings import Settings

MAX_ASKED = 1000
"""Requests of the server that clients have not answered."""


@dataclass(slots=True)
class Asked:
    """A request of the server that was passed to a client."""

    client: Client
    id: Any
    raw_id: bytes
    on_answer: Callable[[frames.Frame], None] | None = None
    """Takes the client's answer; None: the server gets it."""


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

    modern: bool = False
    """Whether the server has no sessions (revision 2026-07-28)."""
    tool_params: dict[str, tuple[Param, ...]] = field(default_factory=dict)
    """By tool: arguments that requests repeat in HTTP headers."""

    tools: ToolFilter | None = None
    """Which tools clients may see and call, and as what; None: all as they are."""

    def __post_init__(self) -> None:
        chosen = self.settings
        if chosen.tools_allow or chosen.tools_deny or chosen.tools_overrides:
            self.tools = ToolFilter(chosen.tools_allow, chosen.tools_deny, chosen.tools_overrides)

    def admitted(self, frame: frames.Frame) -> frames.Frame:
        """A client's request as the server may get it: a tool has the server's name in its text.

        Raises:
            RefusedError: it is for a tool that is not for clients.

        """
        if self.tools is None:
            return frame
        try:
            return self.tools.admitted(frame)
        except frames.FrameError as error:
            self.metrics.count("mcp_relay_requests_refused", "tool")
            raise RefusedError(error.code, str(error)) from error

    def asking(self, number: int, method: str, params: dict[str, Any]) -> bytes:
        """A request of the relay's own, as the server wants it."""
        if self.modern:
            params = {**params, "_meta": envelope.of({}, handshake.CLIENT_INFO)}
        return frames.request(number, method, params)

    def save_interests(self) -> None:
        """Keep subscriptions and log levels over a restart of the relay."""
        self.store.save_interests({**self.interests.dump(), "level": self.level})
