"""`spec.session`: the MCP session, and what its clients may do."""

from typing import Annotated, Final

from pydantic import ConfigDict, Field

from mcp_operator.core.api.conditions import Audit, ClientCapability, OnServerRestart, Protocol, SessionMode
from mcp_operator.core.api.model import SET, UNDECLARED, Model, core, rules

DAY = 86_400

# No comma, which parts the names on their way to the relay; a port makes no sense behind a wildcard.
_HOST = (
    r"^(\*|\*(\.[a-zA-Z0-9_]([-a-zA-Z0-9_]*[a-zA-Z0-9_])?)+"
    r"|([a-zA-Z0-9_]([-a-zA-Z0-9_]*[a-zA-Z0-9_])?(\.[a-zA-Z0-9_]([-a-zA-Z0-9_]*[a-zA-Z0-9_])?)*"
    r"|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?)$"
)


class CallLimits(Model):
    """What one client may do. Above a limit it gets 429 with `Retry-After`, and the server nothing."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.burst) || has(self.callsPerMinute)",
                "spec.session.limits.burst needs callsPerMinute: set that too, or remove burst",
            )
        )
    )

    calls_per_minute: Annotated[int, Field(ge=1, le=6_000_000)] | None = None
    """Requests that a client may send a minute, in the long run; notifications do not count. At most 6000000.
    Default: no limit."""
    burst: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Requests that it may send at once after a time of quiet. At most 1000000. Default: what 10 seconds
    bring, at least 1."""
    concurrent_calls: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Requests of a client that may be open at the same time, those that wait for the server too. At most
    1000. Default: no limit beside 1000 for a session."""


_PER_CLIENT = "(has(self.mode) && self.mode == 'PerClient')"
_ELSEWHERE = "belongs to mode PerClient: set spec.session.mode or remove it"
_OWN_LIMIT = "quantity(string(self.processMemoryLimit))"
_NOT_TINY = (
    "!has(self.processMemoryLimit) || !isQuantity(string(self.processMemoryLimit))"
    f" || {_OWN_LIMIT}.compareTo(quantity('1Mi')) >= 0"
)
SERVER_MEMORY = "512Mi"
"""Memory limit of the server's container where none is named and no more is requested."""

# The container's limit is what is named, or else the default, or the request where that is more.
_CONTAINER_LIMITS = (
    "has(self.resources) && has(self.resources.limits) && 'memory' in self.resources.limits"
    " ? [quantity(string(self.resources.limits['memory']))]"
    f" : [quantity('{SERVER_MEMORY}')] + (has(self.resources) && has(self.resources.requests)"
    " && 'memory' in self.resources.requests ? [quantity(string(self.resources.requests['memory']))] : [])"
)
# What is no quantity is told by its pattern, once, and not by each rule that reads it.
_WANTED = "self.session.processMemoryLimit"
_WITHIN = (
    f"!has({_WANTED}) || !isQuantity(string({_WANTED}))"
    f" || ({_CONTAINER_LIMITS}).exists(l, quantity(string({_WANTED})).compareTo(l) <= 0)"
)
# On the whole spec, whose other fields they look at.
SESSION_RULES: Final = (
    (
        _WITHIN,
        "spec.session.processMemoryLimit is above spec.resources.limits.memory: lower it or raise that",
    ),
)


class Session(Model):
    """The MCP session, and limits for it and its clients."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                f"!has(self.maxProcesses) || {_PER_CLIENT}",
                f"spec.session.maxProcesses {_ELSEWHERE}",
            ),
            (
                f"!has(self.processMemoryLimit) || {_PER_CLIENT}",
                f"spec.session.processMemoryLimit {_ELSEWHERE}",
            ),
            (
                _NOT_TINY,
                "spec.session.processMemoryLimit is below 1Mi: write bytes with a suffix, as 128Mi",
            ),
            (
                f"!has(self.maxClients) || !{_PER_CLIENT}",
                "spec.session.maxClients belongs to mode Shared: with PerClient set maxProcesses instead",
            ),
            (
                f"!has(self.onServerRestart) || self.onServerRestart == 'Expire' || !{_PER_CLIENT}",
                "spec.session.onServerRestart: with PerClient a session ends with its process: remove it",
            ),
        )
    )

    mode: SessionMode = SessionMode.SHARED
    """Shared: one process for all clients. PerClient: each client session gets a process of its own, in the
    same container, which ends with the session; for servers that keep something for their client. One more
    process tells whether the server works and which tools it has; clients without sessions (revision
    2026-07-28) have one together. All processes share the container's limits, files and user. Default
    Shared."""
    max_processes: Annotated[int, Field(ge=1, le=1000, json_schema_extra=UNDECLARED)] = 4
    """With PerClient: number of processes for clients at once; above it the one that was idle longest ends,
    with its session. While all are in use, `initialize` gets 503. `resources` must be enough for one more
    than this. Default 4, at most 1000."""
    process_memory_limit: Annotated[str | int, core("Quantity")] | None = None
    """With PerClient: memory that each process may hold, together with all that it started; the one that
    exceeds it is killed, and nobody else notices. It is looked at 10 to 100 times a second, as far as
    5 % of a CPU go, and counts what is allocated and shared memory, not programs and files. More than
    `resources` have for all of them at once is allowed. Default: half of `resources.limits.memory`; the same
    as that: no limit. From 1Mi."""
    protocol: Protocol = Protocol.AUTO
    """Kind of MCP revision spoken with the server; clients of every revision are served whatever it is. Auto:
    `initialize` first, and `server/discover` if that is refused. Legacy: revisions with a handshake
    (2024-11-05 to 2025-11-25). Modern: revision 2026-07-28, for a server that speaks both and is better at
    this one. A process speaks one kind; `status.session.protocolVersion` says which. Default Auto."""

    http_sse: bool = False
    """Serve the deprecated HTTP+SSE transport of revision 2024-11-05, too, with the stream at `/sse`, for
    clients that know no other. Default false."""
    client_capabilities: Annotated[
        tuple[ClientCapability, ...], Field(max_length=3, json_schema_extra=SET)
    ] = ()
    """What a server with a handshake is told that it may ask clients for: `sampling`, `elicitation`, `roots`.
    Its question goes to the client whose call it belongs to; while calls of several clients are open nobody
    knows whose it is, and it is refused. A server of revision 2026-07-28 needs no list. Default: none."""
    startup_timeout_seconds: Annotated[int, Field(ge=1, le=3600)] = 120
    """Seconds from the start of the process until `initialize` must be answered; then the pod is replaced.
    Downloads by npx or uvx count. Default 120, at most 3600."""
    call_timeout_seconds: Annotated[int, Field(ge=1, le=DAY)] = 30
    """Seconds until a call that the server does not answer ends with an error and is cancelled. Default 30,
    at most 86400."""
    max_call_seconds: Annotated[int, Field(ge=0, le=DAY)] = 0
    """Seconds that a call which reports progress may take in all: each progress notification gives it
    `callTimeoutSeconds` again, up to this limit. Up to `callTimeoutSeconds`, progress extends nothing.
    Default 0, at most 86400."""
    idle_timeout_seconds: Annotated[int, Field(ge=1, le=30 * DAY)] = 7200
    """Seconds after which a client's session without calls and without an open stream ends. Default 7200 (2
    hours), at most 2592000."""
    on_server_restart: Annotated[OnServerRestart, Field(json_schema_extra=UNDECLARED)] = (
        OnServerRestart.RESUME
    )
    """What becomes of clients' sessions when the server got a new process, which knows nothing of them.
    Resume: they go on, and clients are told to read the lists again; subscriptions to resources and log
    levels have to be set again. Expire: the next request gets 404, upon which a client initialises anew; for
    servers that keep something for a session. A restart of the relay alone ends none. Default Resume."""
    max_clients: Annotated[int, Field(ge=1, le=100_000, json_schema_extra=UNDECLARED)] = 1000
    """Number of client sessions kept at once; above it the one that was idle longest ends: with auth type JWT
    that of the subject that has the most. Default 1000, at most 100000."""
    max_message_bytes: Annotated[int, Field(ge=1024, le=268_435_456)] = 16_777_216
    """Bytes that one message may have, in either direction; a longer one is refused or dropped, the session
    goes on. Default 16777216 (16 MiB), from 1024 to 268435456."""
    limits: CallLimits = CallLimits()
    """Limits of each client: with auth type JWT of a subject, else of a session, and for requests without
    one of the address they come from; opening a session counts for the address. Default: none."""
    audit: Audit = Audit.NONE
    """Calls: the relay writes one JSON line to its log for each request of a client: time, who, session,
    method, tool, outcome, duration, sizes, ids, never arguments or results. Default None."""
    allowed_hosts: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=259, pattern=_HOST)], ...],
        Field(max_length=64, json_schema_extra=SET),
    ] = ()
    """More names by which clients may address the server, and web pages that may call it: `name` (any port),
    `name:port`, `*.suffix`, or `*` for every name. The Service's own names and loopback are always allowed.
    A request with another Host or Origin gets 403: that stops DNS rebinding. Default: none. At most 64."""
