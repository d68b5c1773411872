"""The life of the one session with a remote server: no process, but the same handshake, states and status."""

from typing import Any

from mcp_sidecar.core.document import Problem, Process
from mcp_sidecar.core.lines import Line
from mcp_sidecar.core.machine import State
from mcp_sidecar.core.target import Target
from mcp_sidecar.remote.link import Link
from mcp_sidecar.session.channel import Channel
from mcp_sidecar.session.inbound import Inbound
from mcp_sidecar.session.outbound import Outbound
from mcp_sidecar.session.shared import Shared
from mcp_sidecar.session.upstream import Upstream

SPARE_SECONDS = 10.0


class RemoteUpstream(Upstream):
    """The session with `target`. What a launcher says of a process, its link says of a session."""

    met = "remote_session"

    def __init__(self, shared: Shared, inbound: Inbound, outbound: Outbound, target: Target) -> None:
        self._target = target
        super().__init__(shared, inbound, outbound)

    def _connect(self, limit: int) -> Channel:
        settings = self.shared.settings
        self._remote = Link(
            self._target,
            self,
            name=settings.server_name,
            limit=limit,
            patience=settings.startup_timeout,
            longest=max(settings.call_timeout, settings.max_call) + SPARE_SECONDS,
            state=settings.state_dir,
            files=settings.secrets_dir,
            params=lambda tool: self.shared.tool_params.get(tool, ()),
        )
        return self._remote

    def line(self, line: Line, about: int | None = None) -> None:
        """A message of the server; `about`: it came on the stream of the call with this number."""
        self._inbound.about = about
        try:
            super().line(line)
        finally:
            self._inbound.about = None

    def away(self, problem: Problem) -> None:
        """The server cannot be used now. Calls on their way wait, or are answered by the link."""
        if self.state is State.CONNECTING:
            self.shared.board.update(error=problem)
        elif self.state is not State.TERMINATING:
            self.masker.lost()
            self.shared.metrics.count("mcp_relay_upstream_events", "connection_lost")
            self._lose(problem)
        self.shared.board.release()

    def _renew(self) -> None:
        """A session takes the place of another one, which takes its questions along; calls are sent again."""
        self.listing.stop()
        self.shared.asked.clear()
        self.backlog.clear()

    def _watch_start(self, process: Process) -> None:
        """The link has its own patience, and goes on after it."""

    def _noise(self, line: str) -> None:
        if self.state is State.CONNECTING and self.shared.board.facts.error is None:
            text = f"The server at {self._target.url} sends what is no JSON-RPC"
            self.shared.board.update(error=Problem("Initialize", "NoJsonRpc", text))

    def _refused(self, incarnation: str, problem: Problem, masked: list[str] | None) -> None:
        super()._refused(incarnation, problem, masked)
        if self.state is State.REFUSED:
            self._remote.refused(problem)

    def _ready(self, answer: dict[str, Any], since: float, *, adopted: bool) -> None:
        super()._ready(answer, since, adopted=adopted)
        self._remote.settled(self.shared.revision, modern=self.shared.modern)
