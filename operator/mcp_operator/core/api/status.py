"""`status` of an MCPServer: what is true now.

The operator alone writes it; every list and every text is bounded.
"""

from typing import Annotated

from pydantic import Field

from mcp_operator.core.api.conditions import ConditionStatus, ConditionType, Phase, RecoveryAction
from mcp_operator.core.api.model import ATOMIC, SET, Message, Model, Name, ShortText, Timestamp, map_of
from mcp_relay_api.status import MAX_DESCRIPTION, MAX_SIGNAL, MAX_STDERR_TAIL, MAX_TOOLS, ErrorPhase

MAX_MESSAGE = 1024
MAX_TOOL_NAME = 256
MAX_TITLE = 256
MAX_CAPABILITIES = 64


class Condition(Model):
    """One aspect of the state, in the form of Kubernetes' own conditions."""

    type: ConditionType
    """Accepted, Available, Verified, Ready, Reconciling or Stalled."""
    status: ConditionStatus
    """True or False."""
    reason: ShortText
    """Why, as one stable word; docs/api.md lists them."""
    message: Message
    """Why, for people. At most 1024 characters."""
    last_transition_time: Timestamp
    """When `status` changed last."""
    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """`metadata.generation` that the condition is about."""


class Address(Model):
    """Where clients connect."""

    url: Annotated[str, Field(max_length=1024)]
    """URL of the MCP endpoint (Streamable HTTP) inside the cluster."""


class ServerError(Model):
    """The last failure."""

    phase: ErrorPhase
    """Stage in which the error arose: Validation, Admission, Sandbox, Scheduling, ImagePull,
    ContainerStart, ProcessStart, Process, Transport, Initialize or ListTools."""
    reason: ShortText
    """Why, as one stable word; docs/api.md lists them."""
    message: Message
    """Why, for people. At most 1024 characters."""
    exit_code: int | None = None
    """Exit code of the server process, if it ended; 128 plus the signal's number after a signal."""
    signal: Annotated[str, Field(max_length=MAX_SIGNAL)] | None = None
    """Signal that ended the process, for example SIGKILL."""
    time: Timestamp
    """When it happened."""
    stderr_tail: Annotated[str, Field(max_length=MAX_STDERR_TAIL)] | None = None
    """Last lines that the server wrote to stderr, secret values masked. At most 2048 characters."""


class RecoveryStatus(Model):
    """What the operator does about failures. It goes on from here after its own restart."""

    action: RecoveryAction = RecoveryAction.NONE
    """What the operator does now: None, Wait, Create, Reconnect, Recreate or GiveUp."""
    attempt: Annotated[int, Field(ge=0)] = 0
    """Number of the running retry, 0 for none."""
    max_retries: Annotated[int, Field(ge=0)] = 0
    """`spec.recovery.maxRetries` as it was counted with."""
    next_attempt_time: Timestamp | None = None
    """When the next attempt comes, if one is waited for."""
    restarts: Annotated[int, Field(ge=0)] = 0
    """How often the pod was replaced since the resource exists, for whatever cause, once its server had
    started."""
    reconnects: Annotated[int, Field(ge=0)] = 0
    """How often the connection to a running process was restored since the resource exists."""
    consecutive_failures: Annotated[int, Field(ge=0)] = 0
    """Failures since the last stable time or change; each costs a retry."""
    config_hash: Annotated[str, Field(max_length=64)] | None = None
    """Hash of spec, referenced Secrets and ConfigMaps and restart annotation that the count belongs to;
    another one starts anew."""
    drops_since: Timestamp | None = None
    """When the connection to the process broke first, while it breaks again and again: each time within 10
    seconds. It must hold within `spec.session.startupTimeoutSeconds` from here, else the pod is replaced."""
    failed_epoch: Annotated[int, Field(ge=0)] | None = None
    """Epoch of the pod whose failure was counted last, so that none counts twice."""


class ServerInfo(Model):
    """How the server names itself."""

    name: ShortText
    """Name that the server gives itself."""
    title: ShortText | None = None
    """Name for people, if the server has one."""
    version: ShortText | None = None
    """Version that the server gives itself."""


class ProcessFailure(Model):
    """How a process of one client failed."""

    reason: Annotated[str, Field(max_length=64)]
    """As of `status.error`: OOMKilled, ProcessExited, ProcessSignaled or why it could not be started."""
    message: Message
    """What happened and what to do about it, for people."""
    time: Timestamp
    """When it ended."""


class SessionStatus(Model):
    """The pod, and the one MCP session with its process."""

    pod_name: Name | None = None
    """Name of the pod."""
    pod_uid: Annotated[str, Field(max_length=64)] | None = None
    """UID of the pod."""
    epoch: Annotated[int, Field(ge=0)] = 0
    """Number of the pod: each replacement adds one."""
    since: Timestamp | None = None
    """When the session was initialised. Only while it is."""
    clients: Annotated[int, Field(ge=0)] | None = None
    """Number of client sessions, with a delay of some seconds. Only while the session is initialised."""
    processes: Annotated[int, Field(ge=0)] | None = None
    """Number of processes for clients, with the same delay. Only with `spec.session.mode: PerClient`."""
    last_process_failure: ProcessFailure | None = None
    """How the last process of a client failed, with the same delay; no other client notices. Only with
    `spec.session.mode: PerClient`, until the relay starts anew."""
    protocol_version: Annotated[str, Field(max_length=32)] | None = None
    """MCP revision that the server and the relay agreed on, for example 2025-11-25."""
    server_info: ServerInfo | None = None
    """How the server names itself."""
    capabilities: Annotated[
        tuple[ShortText, ...],
        Field(max_length=MAX_CAPABILITIES, json_schema_extra=SET),
    ] = ()
    """What the server declared, as sorted paths, for example `resources`, `resources.subscribe`, `tools`.
    At most 64."""


class Tool(Model):
    """One tool of the server."""

    name: Annotated[str, Field(max_length=MAX_TOOL_NAME)]
    """Name by which it is called. At most 256 characters."""
    title: Annotated[str, Field(max_length=MAX_TITLE)] | None = None
    """Name for people. At most 256 characters."""
    description: Annotated[str, Field(max_length=MAX_DESCRIPTION)] | None = None
    """What it does, cut at 256 characters."""


class MCPServerStatus(Model):
    """What is true now."""

    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """`metadata.generation` of the spec that this status is about: while a pod of an older spec serves on
    until it may be replaced, of that one."""
    phase: Phase | None = None
    """Summary for people: Pending, Connecting, Connected, Reconnecting, Recreating, Error, Suspended or
    Terminating."""
    conditions: Annotated[
        tuple[Condition, ...],
        Field(
            max_length=8,
            json_schema_extra=map_of("type"),
        ),
    ] = ()
    """Accepted, Available, Verified and Ready; Reconciling and Stalled only while True."""
    image: Annotated[str, Field(max_length=1024)] | None = None
    """Image that the server runs from: `spec.image` or the operator's runtime image."""
    address: Address | None = None
    """Where clients connect. Only while Ready is True."""
    error: ServerError | None = None
    """The last failure that cost a retry; it is removed once the session was stable for
    `spec.recovery.stableSeconds`. While there is none: what holds the server up now, if anything does."""
    recovery: RecoveryStatus | None = None
    """What the operator does about failures."""
    session: SessionStatus | None = None
    """The pod, and the one MCP session with its process."""
    tool_count: Annotated[int, Field(ge=0)] | None = None
    """Number of the server's tools, of all, also beyond the 128 listed. Missing: not known; 0: it has
    none."""
    tools_digest: Annotated[str, Field(max_length=128)] | None = None
    """Digest of the whole tool list with schemas; it changes when the list does."""
    tools: Annotated[
        tuple[Tool, ...],
        Field(max_length=MAX_TOOLS, json_schema_extra=ATOMIC),
    ] = ()
    """The first 128 tools of the server. Only while the session is initialised."""
