"""Sessions of clients: opened by `initialize`, found by signed id, ended by DELETE, idleness or capacity."""

import asyncio
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mcp_sidecar import log
from mcp_sidecar.core import capacity, frames, jsontext, methods, revisions
from mcp_sidecar.core.interests import Interests
from mcp_sidecar.core.sessionid import RANDOM_BYTES, Signer, Ticket, process_mark
from mcp_sidecar.session.calls import Outbox, RefusedError
from mcp_sidecar.session.store import Store

if TYPE_CHECKING:
    from mcp_sidecar.session.relay import Relay

MAX_CALLS = 1000
RETRY_AFTER_SECONDS = 1
_RECENT = 256
_MAX_DECLARED_BYTES = 4096


class Client:
    """One client's session."""

    __slots__ = (
        "calls", "capabilities", "declared", "ended", "envelope", "home", "info", "key", "last_used",
        "missed", "process", "recent", "restored", "revision", "sid", "stream", "subject",
    )  # fmt: skip

    def __init__(self, sid: str, ticket: Ticket, subject: str, now: float, *, restored: bool) -> None:
        self.sid = sid
        self.home: Relay
        """The relay to the process that serves the session."""
        self.key = ticket.random.hex()
        self.subject = subject
        self.revision = ticket.revision
        self.capabilities = ticket.capabilities
        self.declared: Mapping[str, Any] = {name: {} for name in sorted(ticket.capabilities)}
        """Capabilities as the client declared them; of a restored session only what its id says."""
        self.info: Any = None
        """How the client names itself, if that is known."""
        self.envelope: dict[str, bytes] | None = None
        """The same, as requests to a server without sessions have it."""
        self.process = ticket.process
        """Mark of the server process that the session was opened with."""
        self.last_used = now
        self.restored = restored
        self.ended = False
        self.calls: dict[Hashable, int] = {}
        """Open calls: the client's id -> the upstream id."""
        self.recent: deque[Hashable] = deque(maxlen=_RECENT)
        """Ids of the calls that ended last: a cancellation of one of these comes late, not early."""
        self.stream: Outbox | None = None
        """The open GET stream."""
        self.missed: dict[str, bytes] = {}
        """`list_changed` notifications, one of a kind, for the time without a stream."""

    def introduce(self, params: Mapping[str, Any]) -> None:
        """Keep what the client said of itself in `initialize`, if it is not too much."""
        declared, info = params.get("capabilities"), params.get("clientInfo")
        if isinstance(declared, dict) and len(jsontext.dumps(declared)) <= _MAX_DECLARED_BYTES:
            self.declared = declared
        if isinstance(info, dict) and len(jsontext.dumps(info)) <= _MAX_DECLARED_BYTES:
            self.info = info

    @property
    def in_use(self) -> bool:
        """An open call or an open stream is use."""
        return bool(self.calls) or self.stream is not None

    def left(self, call_id: Hashable, now: float) -> None:
        """One of the session's calls ended."""
        self.calls.pop(call_id, None)
        self.recent.append(call_id)
        self.last_used = now

    def open_stream(self) -> Outbox:
        """Open the GET stream; an older one ends."""
        if self.stream is not None:
            self.stream.close()
        self.stream = Outbox()
        for notice in self.missed.values():
            self.stream.put((notice,))
        self.missed.clear()
        return self.stream

    def close_stream(self, stream: Outbox, now: float) -> None:
        """The GET stream's connection ended."""
        stream.close()
        if self.stream is stream:
            self.stream = None
            self.last_used = now

    def updated(self, notice: bytes) -> bool:
        """Tell the client that a resource changed; False when it has no stream."""
        return self.stream is not None and self.stream.put((notice,))

    def hears(self, level: object, interests: Interests) -> bool:
        """Whether the client wants a log message of this level."""
        return interests.shows(self.key, level)

    def list_changed(self, method: str, notice: bytes) -> None:
        """Tell the client on its stream, or when it opens one."""
        if self.stream is None or not self.stream.put((notice,)):
            self.missed[method] = notice


class Clients:
    """All sessions of this relay."""

    def __init__(
        self, signer: Signer, store: Store, limit: int, idle_seconds: float, *, expire: bool = False
    ) -> None:
        self._signer = signer
        self._store = store
        self._limit = limit
        self._idle = idle_seconds
        self._expire = expire  # sessions end with the server process
        self._by_sid: dict[str, Client] = {}
        self._by_key: dict[str, Client] = {}
        self._guests: dict[str, Client] = {}
        self._held: Counter[str] = Counter()
        self._loop = asyncio.get_running_loop()
        self.on_change: Callable[[], None] = lambda: None
        self.on_end: Callable[[Client, str], None] = lambda _client, _reason: None
        self.on_restore: Callable[[Client], None] = lambda _client: None

    def __len__(self) -> int:
        return len(self._by_sid)

    def __iter__(self) -> Iterator[Client]:
        """All sessions and all guests."""
        return iter([*self._by_sid.values(), *self._guests.values()])

    @property
    def guests(self) -> int:
        """How many are told what sessions are told without having one."""
        return len(self._guests)

    def host(self, guest: Client) -> None:
        """Have somebody told what sessions are told who has none."""
        self._guests[guest.key] = self._by_key[guest.key] = guest

    def unhost(self, guest: Client) -> None:
        """The guest is gone."""
        self._guests.pop(guest.key, None)
        self._by_key.pop(guest.key, None)

    def open(self, params: dict[str, Any], subject: str, random: bytes | None = None) -> Client:
        """A new session for a client that sent `initialize` with these params.

        `random` makes it unlike all others; None: any.

        Raises:
            RefusedError: all sessions the server may have are in use.

        """
        declared = params.get("capabilities")
        ticket = Ticket(
            revision=revisions.negotiate(params.get("protocolVersion")),
            capabilities=frozenset(declared if isinstance(declared, dict) else ())
            & set(methods.CLIENT_CAPABILITIES),
            created_ms=time.time_ns() // 1_000_000,
            random=random or secrets.token_bytes(RANDOM_BYTES),
            process=process_mark(self._store.incarnation),
        )
        sid = self._signer.sign(ticket, subject)
        client = Client(sid, ticket, subject, self._loop.time(), restored=False)
        client.introduce(params)
        return self._enter(client)

    def find(self, sid: str, subject: str) -> Client | None:
        """The session with this id; one of an earlier relay is restored. None: there is none (any more)."""
        client = self._by_sid.get(sid)
        if client is not None and client.subject == subject:
            client.last_used = self._loop.time()
            return client
        if client is not None:
            return None
        ticket = self._signer.verify(sid, subject)
        if ticket is None or self._store.is_ended(ticket.random.hex()) or self._outlived(ticket.process):
            return None
        client = self._enter(Client(sid, ticket, subject, self._loop.time(), restored=True))
        log.event("session_restored", session=client.key)
        self.on_restore(client)
        return client

    def of_another_process(self, client: Client) -> bool:
        """Whether a session was opened with another server process than the one that is initialised now."""
        return self._store.answer is not None and client.process != process_mark(self._store.incarnation)

    def _outlived(self, process: bytes) -> bool:
        known = self._expire and self._store.answer is not None
        return known and process != process_mark(self._store.incarnation)

    def process_changed(self) -> None:
        """Another process is initialised: where that ends sessions, end those of the one before."""
        for client in list(self._by_sid.values()) if self._expire else ():
            if self.of_another_process(client):
                self.end(client, "server_restarted")

    def by_key(self, key: str) -> Client | None:
        """The live session with this key."""
        return self._by_key.get(key)

    def _enter(self, client: Client) -> Client:
        if len(self._by_sid) >= self._limit:
            self._make_room(client.subject)
        self._by_sid[client.sid] = client
        self._held[client.subject] += 1
        self._by_key[client.key] = client
        self.on_change()
        return client

    def _make_room(self, newcomer: str) -> None:
        def turn(client: Client) -> capacity.Rank | None:
            return capacity.rank(
                client.subject,
                newcomer,
                self._held,
                working=bool(client.calls),
                listening=client.stream is not None,
                last_used=client.last_used,
            )

        found = capacity.first(self._by_sid.values(), turn)
        if found is None:
            text = f"All {self._limit} client sessions of this server are in use; try again later"
            data = {"reason": "capacity", "max_clients": self._limit}
            raise RefusedError(frames.SERVER_ERROR, text, data, 503, RETRY_AFTER_SECONDS)
        self.end(found, "capacity")

    def end(self, client: Client, reason: str) -> None:
        """End a session for good."""
        if client.ended:
            return
        client.ended = True
        self._by_sid.pop(client.sid, None)
        self._by_key.pop(client.key, None)
        self._held[client.subject] -= 1
        if not self._held[client.subject]:
            del self._held[client.subject]
        self._store.end_session(client.key)
        self.on_end(client, reason)
        if client.stream is not None:
            client.stream.close()
        log.event("session_ended", session=client.key, reason=reason)
        self.on_change()

    def expire(self) -> None:
        """End the sessions that were idle for too long."""
        before = self._loop.time() - self._idle
        for client in list(self._by_sid.values()):
            if client.last_used < before and not client.in_use:
                self.end(client, "idle")
