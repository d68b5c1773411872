"""The way of a request past limits and audit log, where a relay has any."""

from mcp_sidecar.core import frames, record
from mcp_sidecar.session.calls import Call, RefusedError
from mcp_sidecar.session.guard import counted_for
from mcp_sidecar.session.relay import Relay
from mcp_sidecar.web.exchange import Exchange


class Admission:
    """Gives each request its visit. With neither limits nor audit log it does nothing.

    `shared` says that all clients are one subject (a bearer token, or none at all).
    """

    def __init__(self, relay: Relay, *, shared: bool) -> None:
        self._guard = relay.guard
        self._shared = shared

    def enter(self, exchange: Exchange, frame: frames.Frame, subject: str, session: str = "") -> None:
        """Admit a request.

        Raises:
            RefusedError: its client is over a limit.

        """
        if self._guard is None:
            return
        peer, head = exchange.peer, exchange.head
        facts = {
            "subject": record.text(subject),
            "client": peer,
            **({"session": session} if session else {}),
            **({"requestId": head.echo[0][1].decode("ascii")} if head.echo else {}),
            "requestBytes": len(exchange.body),
        }
        key = counted_for(subject, session, peer, shared=self._shared)
        exchange.visit = self._guard.enter(frame, key, facts, head.headers)


def follow(exchange: Exchange, call: Call) -> None:
    """The request became a call."""
    if exchange.visit is not None:
        exchange.visit.follow(call)
        exchange.visit = None


def end(exchange: Exchange, outcome: str, response_bytes: int = 0, code: int | None = None) -> None:
    """The request ended without having become a call."""
    if exchange.visit is not None:
        exchange.visit.ended(outcome, response_bytes, code)
        exchange.visit = None


def refused(exchange: Exchange, refusal: RefusedError) -> None:
    """The request was refused."""
    end(exchange, "refused", code=refusal.code)
