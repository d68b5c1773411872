"""Requests of clients without a session, from their arrival to their answer."""

import secrets
from collections.abc import Iterable

from mcp_sidecar.core import frames, jsontext, methods
from mcp_sidecar.core.interests import Interests, covers
from mcp_sidecar.core.lines import Line
from mcp_sidecar.core.modern import envelope, errors, results, subscriptions
from mcp_sidecar.core.modern.state import KEY_BYTES
from mcp_sidecar.core.sessionid import Ticket
from mcp_sidecar.session.calls import Call, RefusedError
from mcp_sidecar.session.clients import Client

RETRY_AFTER_SECONDS = 2
_UNAVAILABLE = 503


class Caller(Client):
    """Who sent one request: it owns this call alone, and of no other request is known whose it is."""

    __slots__ = ("level",)

    def __init__(self, subject: str, capabilities: Iterable[str], level: str | None, now: float) -> None:
        known = frozenset(capabilities) & set(methods.CLIENT_CAPABILITIES)
        ticket = Ticket(envelope.REVISION, known, 0, secrets.token_bytes(KEY_BYTES))
        super().__init__("", ticket, subject, now, restored=False)
        self.level = level
        """From this level on the caller wants log messages; None: it wants none."""

    def hears(self, level: object, interests: Interests) -> bool:
        """Whether the caller wants a log message of this level."""
        return covers(self.level, level)


class ModernCall(Call):
    """A request of a client without a session."""

    __slots__ = ("status",)

    def __init__(self, client: Client, frame: frames.Frame, started: float, *, sse: bool) -> None:
        super().__init__(client, frame, started, sse=sse)
        self.status = 200
        """HTTP status of a reply that is no stream."""

    def answered(self, line: Line, start: int, end: int, failed: bool) -> None:
        """The server's answer."""
        if failed:
            self.status = results.status(line)
        super().answered(line, start, end, failed)

    def refuse(self, refusal: RefusedError, outcome: str) -> None:
        """End the call with an error of the relay's own."""
        told = translated(refusal)
        self.status = told.status
        super().refuse(told, outcome)


class ListenCall(ModernCall):
    """A `subscriptions/listen` that the server itself serves."""

    __slots__ = ()

    def answered(self, line: Line, start: int, end: int, failed: bool) -> None:
        """The server ended the subscription."""
        if failed:
            super().answered(line, start, end, failed)
            return
        text = bytes(line)
        self.finish((self.tagged(text[:start] + self.raw_id + text[end:], "result"),), "ok")

    def end(self) -> None:
        """End the subscription in good order."""
        self.finish((subscriptions.ended(self.raw_id),), "ok")

    def tagged(self, data: bytes, part: str) -> bytes:
        """A message of the subscription, with the id that the client knows it under."""
        try:
            return jsontext.replace(data, self.raw_id, part, "_meta", envelope.SUBSCRIPTION_KEY)
        except KeyError:
            return data


def translated(refusal: RefusedError) -> RefusedError:
    """A refusal in the terms of this revision."""
    code = errors.own(refusal.code)
    status = refusal.status if refusal.status != 200 else errors.status(code)
    if isinstance(refusal.data, dict) and refusal.data.get("reason") == "server_unavailable":
        status = _UNAVAILABLE
    return RefusedError(code, str(refusal), refusal.data, status, refusal.retry_after)
