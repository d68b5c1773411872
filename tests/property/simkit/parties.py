"""Clients, their calls, the server's questions, and what can become of a call."""

import json
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from simkit.wire import Wire

Json = dict[str, Any]


class Fate(Enum):
    """What a call's reply says."""

    ANSWERED = "the server's answer"
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    DUPLICATE = "the id is in use"
    GONE = "the server is gone, the outcome unknown"
    ENDED = "the session was ended"
    UNAVAILABLE = "the server cannot be used"
    NOT_FOUND = "no such session"


_BY_REASON = {
    "server_gone": Fate.GONE,
    "server_unavailable": Fate.UNAVAILABLE,
    "session_not_found": Fate.NOT_FOUND,
}
_BY_CODE = {
    -32600: ("an open request of this session has the same id", Fate.DUPLICATE),
    -32603: ("Request cancelled", Fate.CANCELLED),
    -32001: ("timed out after", Fate.TIMED_OUT),
    -32000: ("The session was ended while the call", Fate.ENDED),
}
GIVEN_UP = (Fate.TIMED_OUT, Fate.CANCELLED, Fate.ENDED)


@dataclass(eq=False)
class Client:
    """A client's session."""

    name: int
    capabilities: frozenset[str]
    sid: bytes = b""
    ended: bool = False
    known: bool = True
    """Whether the present relay has seen the session."""
    stream: Wire | None = None
    recent: set[Any] = field(default_factory=set)
    early: dict[Any, float] = field(default_factory=dict)
    cancelled: list[Any] = field(default_factory=list)
    """All ids it ever cancelled."""
    lists_due: int = 0
    list_missed: bool = False
    lists_certain: bool = True
    wires: list[Wire] = field(default_factory=list)


@dataclass(eq=False)
class Ask:
    """One call of a client; `tag` tells it from all others at both ends."""

    tag: int
    client: Client
    wire: Wire
    raw_id: bytes
    token: bytes | None
    streams: bool
    """Whether the client takes an event stream as reply."""
    fate: Fate | None = None
    allowed: frozenset[Fate] = frozenset()
    """Without a fate of its own: those a call may have that waited for the server."""
    since: float | None = None
    """When the relay took it; None: it waits for the server."""
    number: int | None = None
    """Its id at the server."""
    answer: bytes = b""
    progress: list[bytes] = field(default_factory=list)
    heard: bool = True
    """Whether the client still waits for the reply."""
    index: int = 0
    """The place of its reply on its connection."""
    told: bool = False
    """Whether the server was told that it is cancelled."""
    excused: bool = False
    """The relay or the server that knew of it is gone: the server need not be told any more."""

    @property
    def id(self) -> Any:
        return json.loads(self.raw_id)

    @property
    def open(self) -> bool:
        """The relay took it and it has no end yet."""
        return self.since is not None and self.fate is None

    @property
    def waiting(self) -> bool:
        """It waits until the server can be used."""
        return self.since is None and self.fate is None


@dataclass(eq=False)
class Question:
    """A request of the server's."""

    tag: int
    raw_id: bytes
    owner: Client | None
    """To whom it must come; None: to nobody, and the server hears so at once."""
    open: bool = False
    answer: int | None = None
    """The tag of the client's answer that the server must get."""
    refused: bool = False
    """Whether the server must get an error."""
    lost: bool = False
    """The relay or the process that knew of it is gone: the server need not get anything any more."""
    got: list[Json] = field(default_factory=list)
    """What the server got."""


def fate_of(status: int, answer: Json) -> Fate | None:
    """What an error of the relay means."""
    error = answer.get("error", {})
    reason = (error.get("data") or {}).get("reason")
    if reason is not None:
        assert (status == 404) == (reason == "session_not_found")
        return _BY_REASON.get(reason)
    text, fate = _BY_CODE.get(error.get("code"), ("", None))
    return fate if text in error.get("message", "") else None
