"""Session ids that prove themselves.

An id is a few facts and a signature, so that a relay which has never seen it (a restarted one, or the one of
a recreated pod) can go on with the session. Server and subject are not in the text but under the signature:
an id taken to another server, or used with another identity, does not verify. Text: base64url of
version(1) revision(1) capabilities(1) created(8) process(4) random(12), a dot, base64url of HMAC-SHA256.
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass

from mcp_sidecar.core import methods, revisions

_VERSION = 2
RANDOM_BYTES = 12
PROCESS_BYTES = 4
_RANDOM_AT = 3 + 8 + PROCESS_BYTES
_LENGTH = _RANDOM_AT + RANDOM_BYTES
_MAX_TEXT = 128


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a session id says."""

    revision: str
    capabilities: frozenset[str]
    """Names of the client capabilities declared (sampling, elicitation, roots)."""
    created_ms: int
    """Milliseconds since the Unix epoch."""
    random: bytes
    process: bytes = bytes(PROCESS_BYTES)
    """Which server process the session was opened with: `process_mark` of its incarnation."""


def process_mark(incarnation: str) -> bytes:
    """A few bytes that tell one server process from the next, whatever the clocks of two nodes say."""
    return hashlib.sha256(incarnation.encode("utf-8", "replace")).digest()[:PROCESS_BYTES]


class Signer:
    """Makes and checks the ids of one server."""

    def __init__(self, key: bytes, server_uid: str) -> None:
        self._key = key
        self._context = server_uid.encode() + b"\0"

    def sign(self, ticket: Ticket, subject: str) -> str:
        """The session id for `ticket`, valid for `subject` only."""
        flags = sum(
            1 << i for i, name in enumerate(methods.CLIENT_CAPABILITIES) if name in ticket.capabilities
        )
        head = bytes((_VERSION, revisions.LEGACY.index(ticket.revision), flags))
        payload = head + ticket.created_ms.to_bytes(8, "big") + ticket.process + ticket.random
        return f"{_encode(payload)}.{_encode(self._mac(payload, subject))}"

    def verify(self, text: str, subject: str) -> Ticket | None:
        """What a genuine id says; None for every other text."""
        if len(text) > _MAX_TEXT:
            return None
        first, _, second = text.partition(".")
        try:
            payload, mac = _decode(first), _decode(second)
        except (binascii.Error, ValueError):
            return None
        if (
            not hmac.compare_digest(mac, self._mac(payload, subject))
            or text != f"{_encode(payload)}.{_encode(mac)}"
        ):
            return None
        return _ticket(payload)

    def _mac(self, payload: bytes, subject: str) -> bytes:
        return hmac.digest(self._key, self._context + subject.encode() + b"\0" + payload, hashlib.sha256)


def _ticket(payload: bytes) -> Ticket | None:
    if len(payload) != _LENGTH or payload[0] != _VERSION or payload[1] >= len(revisions.LEGACY):
        return None
    names = methods.CLIENT_CAPABILITIES
    return Ticket(
        revision=revisions.LEGACY[payload[1]],
        capabilities=frozenset(name for i, name in enumerate(names) if payload[2] >> i & 1),
        created_ms=int.from_bytes(payload[3:11], "big"),
        process=payload[11:_RANDOM_AT],
        random=payload[_RANDOM_AT:],
    )


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
