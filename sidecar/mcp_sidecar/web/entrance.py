"""Who may come in: everybody, or who has the token. Asked before anything else; see also `issued`."""

from collections.abc import Callable, Mapping
from typing import Protocol

from mcp_sidecar.core.httptext import Field, Head, Reply
from mcp_sidecar.web.exchange import Exchange
from mcp_sidecar.web.tokens import Tokens

UNAUTHORIZED = b'{"error":"Unauthorized"}'
_CHALLENGE = [(b"www-authenticate", b'Bearer realm="mcp"')]

Serve = Callable[[Exchange], None]


def unauthorized(challenge: list[Field]) -> Reply:
    """The reply to somebody who is not known: the same on every path and method."""
    return Reply(401, UNAUTHORIZED, challenge)


class Entrance(Protocol):
    """Decides by the head of a request alone."""

    public: Mapping[bytes, Serve]
    """What is told to everybody, by path, for GET."""

    def admit(self, head: Head) -> Reply | None:
        """None: `head.subject` says who it is, `head.expires` for how long; else the reply."""

    def expired(self, head: Head) -> Reply:
        """The reply to somebody who was let in before and is not any more."""

    def changed(self) -> bool:
        """Whether `admit` may decide otherwise since this was asked last."""


class OpenEntrance:
    """Everybody may come in, and is the same to us."""

    public: Mapping[bytes, Serve] = {}

    def admit(self, head: Head) -> Reply | None:
        """Let in."""
        head.subject = "anonymous"
        return None

    def expired(self, head: Head) -> Reply:
        """Nothing does."""
        raise AssertionError(head.path)

    def changed(self) -> bool:
        """Nothing ever is."""
        return False


class BearerEntrance:
    """All who have the token are one to us."""

    public: Mapping[bytes, Serve] = {}

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def admit(self, head: Head) -> Reply | None:
        """Let in who has it."""
        if not self._tokens.accept(head.headers.get(b"authorization")):
            return unauthorized(_CHALLENGE)
        head.subject = "bearer"
        return None

    def expired(self, head: Head) -> Reply:
        """Nothing does."""
        raise AssertionError(head.path)

    def changed(self) -> bool:
        """Whether tokens came or went."""
        return self._tokens.changed()
