"""What the relay knows of its session with a remote server."""

import asyncio
from dataclasses import dataclass, field

from mcp_sidecar.core.lines import Line
from mcp_sidecar.core.target import SSE
from mcp_sidecar.remote.client import Response


class AwayError(Exception):
    """The server cannot be used now; `reason` is for the status, `after` the seconds that it asks to wait."""

    def __init__(
        self, reason: str, text: str, after: float | None = None, *, initialize: bool = False
    ) -> None:
        super().__init__(text)
        self.reason = reason
        self.after = after
        self.phase = "Initialize" if initialize else "Transport"


class DeniedError(AwayError):
    """The server refuses, and will until something changes."""


class GoneError(Exception):
    """The server knows nothing of the session any more."""


class DoubtError(Exception):
    """Something went wrong that may be about one request only: the session is to be looked at."""


@dataclass(slots=True)
class Session:
    """One session, or what stands for it with a server that keeps none.

    `incarnation` is the relay's own name for it; the id is a secret between relay and server.
    """

    incarnation: str
    transport: str
    path: str
    """Where frames are posted: with SSE the place that the stream named."""
    sid: str = ""
    revision: str = ""
    """Revision negotiated; empty before that."""
    modern: bool = False
    """Whether it is of a revision without sessions."""
    initialized: bool = False
    """Whether the server was told so."""
    streaming: bool = True
    """Whether a stream for what belongs to no call may be offered; False: the server said that it is not."""
    streamed: bool = False
    """Whether such a stream has been open."""
    stream: Response | None = None
    """With SSE: where all answers come."""
    reading: asyncio.Task[None] | None = None
    """With SSE: who reads them."""
    not_before: float = 0.0
    """Time of the event loop before which the server wants no request."""
    pending: set[int] = field(default_factory=set)
    """With SSE: requests whose answers are to come by the stream."""
    pongs: dict[int, asyncio.Future[Line]] = field(default_factory=dict)
    """With SSE: signs of life that are to come by the stream, by the number of the request."""
    trouble: asyncio.Future[Exception] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    """Set to why the session is to be looked at, or is over."""

    @property
    def named(self) -> bool:
        """Whether the server keeps something for it: only then can it be gone."""
        return bool(self.sid) or self.transport == SSE

    def report(self, problem: Exception) -> None:
        """Say that something is wrong; the first counts."""
        if not self.trouble.done():
            self.trouble.set_result(problem)

    def close(self) -> None:
        """Let go of the stream."""
        if self.reading is not None:
            self.reading.cancel()
        if self.stream is not None:
            self.stream.close()

    def headers(self) -> dict[str, str]:
        """What tells the server which session is meant."""
        found = {"MCP-Protocol-Version": self.revision} if self.revision else {}
        return found | ({"Mcp-Session-Id": self.sid} if self.sid else {})
