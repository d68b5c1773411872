"""The stable vocabulary of status: phases, condition types, reasons. docs/api.md is made from this file."""

from enum import StrEnum


class Phase(StrEnum):
    """One word for people; programs read the conditions."""

    PENDING = "Pending"
    """The pod is missing, waits for a node, pulls its image, or its containers are being made."""
    CONNECTING = "Connecting"
    """The server process is starting; its session is not initialised yet."""
    CONNECTED = "Connected"
    """The one MCP session with the process is initialised now; clients are served at `status.address.url`."""
    RECONNECTING = "Reconnecting"
    """The connection to a process that still runs broke; it is being restored, nothing is killed."""
    RECREATING = "Recreating"
    """The server failed; its pod is being replaced, after a backoff."""
    ERROR = "Error"
    """Retries are used up, or none can help. `status.error` tells why, `Stalled` is True."""
    SUSPENDED = "Suspended"
    """`spec.suspend` is true: there is no pod."""
    TERMINATING = "Terminating"
    """The resource is being deleted."""


class ConditionType(StrEnum):
    """Types of `status.conditions`. Each is True or False."""

    ACCEPTED = "Accepted"
    """The spec is valid, what it refers to exists, and no foreign object stands in the way. About the next
    pod: a server that runs goes on when a Secret or ConfigMap that it was started with is gone."""
    AVAILABLE = "Available"
    """The pod is up: its server process and its relay run."""
    VERIFIED = "Verified"
    """The MCP session with the process is initialised now and its tools are listed, or were asked for in
    vain (reason ListToolsFailed), or not all overrides fit (reason ToolOverridesUnmatched)."""
    READY = "Ready"
    """The summary: clients are served now. Available and Verified are True then; Accepted may be False,
    since a running server is not stopped for it. `kubectl wait --for=condition=Ready` reads this one."""
    RECONCILING = "Reconciling"
    """Only present while True: the operator is on the way to what the spec asks for."""
    STALLED = "Stalled"
    """Only present while True: no progress can be made without a change, or only the slow retry is left."""


class ConditionStatus(StrEnum):
    """Value of a condition."""

    TRUE = "True"
    FALSE = "False"


class Reason(StrEnum):
    """Reasons of conditions, of `status.error` and of Events."""

    NOT_OBSERVED = "NotObserved"
    """Nothing is known yet."""

    # Accepted
    VALID = "Valid"
    """The spec is accepted."""
    INVALID_SPEC = "InvalidSpec"
    """The spec cannot be run; the message names the field and the cure."""
    SECRET_NOT_FOUND = "SecretNotFound"  # noqa: S105 - a reason, no password
    """A Secret that the spec refers to does not exist. Looked at again when it appears."""
    SECRET_KEY_NOT_FOUND = "SecretKeyNotFound"  # noqa: S105 - a reason, no password
    """A Secret that the spec refers to lacks the key. Looked at again when it changes."""
    CONFIG_MAP_NOT_FOUND = "ConfigMapNotFound"
    """A ConfigMap that the spec refers to does not exist. Looked at again when it appears."""
    CONFIG_MAP_KEY_NOT_FOUND = "ConfigMapKeyNotFound"
    """A ConfigMap that the spec refers to lacks the key. Looked at again when it changes."""
    INVALID_TOKEN = "InvalidToken"  # noqa: S105 - a reason, no password
    """The bearer token in the Secret that `spec.auth.bearer.secretRef` names cannot be used, for example
    because it is empty. Looked at again when it changes; a server that runs goes on."""
    KEYS_UNAVAILABLE = "KeysUnavailable"
    """The keys of the issuer that `spec.auth.jwt` names cannot be fetched, or none of them can be used. They
    are asked for again; a server whose relay has keys of that place goes on with those for an hour at most,
    any other lets nobody in until then."""
    OWNERSHIP_CONFLICT = "OwnershipConflict"
    """An object of the name that a child must have belongs to someone else; it is left alone."""

    # Available: the pod
    POD_RUNNING = "PodRunning"
    """The server process and the relay run."""
    POD_PENDING = "PodPending"
    """The pod was created and is on its way."""
    POD_MISSING = "PodMissing"
    """There is no pod yet."""
    POD_DELETED = "PodDeleted"
    """Someone else deletes the pod; the next one follows."""
    UNSCHEDULABLE = "Unschedulable"
    """No node takes the pod; the message is the scheduler's."""
    IMAGE_PULL_FAILED = "ImagePullFailed"
    """The image cannot be pulled; the node keeps trying and a success is noticed."""
    ENTRY_POINT_UNKNOWN = "EntryPointUnknown"
    """`spec.command` is not set, and the registry does not tell what the image starts; it is asked again."""
    INVALID_IMAGE_NAME = "InvalidImageName"
    """The image's name cannot be parsed, or its pull policy makes a pull impossible."""
    CONTAINER_CREATE_FAILED = "ContainerCreateFailed"
    """The node cannot make the container, for example a root user where none is allowed."""
    CONTAINER_START_FAILED = "ContainerStartFailed"
    """The node cannot start the container."""
    SANDBOX_FAILED = "SandboxFailed"
    """The node cannot make the pod's sandbox, for example because the RuntimeClass does not exist."""
    ADMISSION_REFUSED = "AdmissionRefused"
    """The API server refused the pod, NetworkPolicy, Service or Secret: Pod Security, a webhook, a missing
    service account or right, an invalid value."""
    QUOTA_EXCEEDED = "QuotaExceeded"
    """The API server refused the pod, Service or Secret because of a ResourceQuota."""
    LIMIT_RANGE_EXCEEDED = "LimitRangeExceeded"
    """The API server refused the pod because of a LimitRange; the message names container, field and cure."""
    EVICTED = "Evicted"
    """The node evicted the pod, or a preemption did."""
    NODE_LOST = "NodeLost"
    """The pod's node is gone or unreachable."""

    # Available: the process
    COMMAND_NOT_FOUND = "CommandNotFound"
    """`spec.command` names a program that the image does not have."""
    PERMISSION_DENIED = "PermissionDenied"
    """`spec.command` names a file that may not be executed."""
    START_FAILED = "StartFailed"
    """The process could not be started for another cause; the message tells."""
    PROCESS_EXITED = "ProcessExited"
    """The server process ended; an end with code 0 counts too, since the server is wanted."""
    PROCESS_SIGNALED = "ProcessSignaled"
    """The server process was ended by a signal."""
    STDOUT_CLOSED = "StdoutClosed"
    """The server process closed its stdout but keeps running: no answer can come from it any more."""
    STDIN_CLOSED = "StdinClosed"
    """The server process closed its stdin but keeps running: no call can reach it any more."""
    OOM_KILLED = "OOMKilled"
    """The server needed more memory than its limit; raise `spec.resources.limits.memory`, or with a process
    for each client `spec.session.processMemoryLimit`, as the message says."""

    # Verified
    INITIALIZED = "Initialized"
    """The session is initialised."""
    INITIALIZING = "Initializing"
    """The process runs; the answer to `initialize` is awaited."""
    STARTUP_TIMEOUT = "StartupTimeout"
    """`initialize` was not answered within `spec.session.startupTimeoutSeconds`."""
    INITIALIZE_FAILED = "InitializeFailed"
    """The server answered `initialize` with an error or with something unusable."""
    LIST_TOOLS_FAILED = "ListToolsFailed"
    """The session is initialised but the server does not list its tools. Clients are served all the same."""
    TOOL_OVERRIDES_UNMATCHED = "ToolOverridesUnmatched"
    """The session is initialised and clients are served, but an entry of `spec.tools.overrides` names no tool
    of the server that clients may see, or gives a tool the name of another one, which is then hidden."""
    TRANSPORT_DROPPED = "TransportDropped"
    """The connection between relay and process broke while the process runs."""
    REMOTE_UNREACHABLE = "RemoteUnreachable"
    """There is no connection to `spec.remote.url`, or it broke; it is tried again."""
    REMOTE_UNAVAILABLE = "RemoteUnavailable"
    """The remote server answers that it cannot serve now (429 or 5xx); it is asked again."""
    REMOTE_DENIED = "RemoteDenied"
    """The remote server refuses the headers of `spec.remote.headersFrom`, or one of them cannot be sent."""
    REMOTE_REFUSED = "RemoteRefused"
    """At `spec.remote.url` is no MCP server, or it leads to another server; the message tells."""
    SESSION_LOST = "SessionLost"
    """The remote server does not know the session any more; a new one is made, calls wait for it."""
    RELAY_UNREACHABLE = "RelayUnreachable"
    """The relay does not answer the operator."""
    RELAY_FAILED = "RelayFailed"
    """The relay's own container has ended; the message has its exit code and last words, or says that its
    memory was too small. The node starts it again; the server is not at fault."""
    RELAY_UNREADABLE = "RelayUnreadable"
    """The relay answers, but its report cannot be read: its image may not fit the operator's."""

    # Ready and Events
    CONNECTED = "Connected"
    """Clients are served."""
    CREATED = "Created"
    """The pod was created."""
    RECREATING = "Recreating"
    """The pod is being replaced."""
    BACKING_OFF = "BackingOff"
    """The next attempt waits for `status.recovery.nextAttemptTime`."""
    BACKOFF_EXHAUSTED = "BackoffExhausted"
    """All retries failed; one slow attempt follows every `spec.recovery.retryAfterErrorSeconds`."""
    CONFIGURATION_CHANGED = "ConfigurationChanged"
    """The spec, a referenced Secret or ConfigMap, or the restart annotation changed: a new pod, a fresh
    budget."""
    SUSPENDED = "Suspended"
    """`spec.suspend` is true."""
    TERMINATING = "Terminating"
    """The resource is being deleted."""


class RecoveryAction(StrEnum):
    """What the operator does about the server at the moment (`status.recovery.action`)."""

    NONE = "None"
    """Nothing: all is as it should be."""
    WAIT = "Wait"
    """Wait for the pod or the process to come up."""
    CREATE = "Create"
    """Create the pod."""
    RECONNECT = "Reconnect"
    """Restore the connection to the same process."""
    RECREATE = "Recreate"
    """Replace the pod, at once or at `nextAttemptTime`."""
    GIVE_UP = "GiveUp"
    """Wait for a change or for the slow retry."""


class AuthType(StrEnum):
    """How clients prove who they are (`spec.auth.type`)."""

    BEARER = "Bearer"
    """Clients send `Authorization: Bearer <token>`."""
    JWT = "JWT"
    """Clients send a token of an issuer in the same way: a signed JSON Web Token that says who they are."""
    NONE = "None"
    """Everyone who reaches the Service is served."""


class SigningAlgorithm(StrEnum):
    """With what a token may be signed (`spec.auth.jwt.algorithms`), in the names of RFC 7518 and RFC 8037."""

    RS256 = "RS256"
    """RSA (PKCS#1 v1.5) with SHA-256: what most issuers use."""
    RS384 = "RS384"
    """The same with SHA-384."""
    RS512 = "RS512"
    """The same with SHA-512."""
    PS256 = "PS256"
    """RSA (PSS) with SHA-256."""
    PS384 = "PS384"
    """The same with SHA-384."""
    PS512 = "PS512"
    """The same with SHA-512."""
    ES256 = "ES256"
    """ECDSA on P-256 with SHA-256."""
    ES384 = "ES384"
    """ECDSA on P-384 with SHA-384."""
    ES512 = "ES512"
    """ECDSA on P-521 with SHA-512."""
    EDDSA = "EdDSA"
    """Ed25519."""


class OnServerRestart(StrEnum):
    """What becomes of clients' sessions with a new server process (`spec.session.onServerRestart`)."""

    RESUME = "Resume"
    """They go on; clients are told to read the lists again."""
    EXPIRE = "Expire"
    """Their next request gets 404, upon which a client initialises anew."""


class SessionMode(StrEnum):
    """Who shares a server process (`spec.session.mode`)."""

    SHARED = "Shared"
    """All clients."""
    PER_CLIENT = "PerClient"
    """Nobody: each client session has its own."""


class Audit(StrEnum):
    """What a relay records of its clients (`spec.session.audit`)."""

    NONE = "None"
    """Nothing."""
    CALLS = "Calls"
    """One line for every call."""


class Protocol(StrEnum):
    """Which kind of MCP revision is spoken with the server (`spec.session.protocol`)."""

    AUTO = "Auto"
    """Ask `initialize` first, and `server/discover` only of a server that refuses it. Right for most."""
    LEGACY = "Legacy"
    """Revisions with a handshake, 2024-11-05 to 2025-11-25."""
    MODERN = "Modern"
    """Revision 2026-07-28, without sessions: `server/discover` comes first."""


class RemoteTransport(StrEnum):
    """How a remote server is spoken to (`spec.remote.transport`)."""

    AUTO = "Auto"
    """Streamable HTTP; SSE when that is answered with 400, 404 or 405."""
    STREAMABLE_HTTP = "StreamableHTTP"
    """The transport of revisions since 2025-03-26."""
    SSE = "SSE"
    """The transport of revision 2024-11-05."""


class EgressClass(StrEnum):
    """Where the pod may open connections to (`spec.network.egress`)."""

    INTERNET = "Internet"
    """The cluster's DNS and public addresses; no private, link-local or metadata address."""
    NONE = "None"
    """Nowhere, DNS included."""
    ALL = "All"
    """Everywhere."""
    CUSTOM = "Custom"
    """Where `spec.network.egressRules` says, and nowhere else."""


class ClientCapability(StrEnum):
    """What a server may ask its clients for (`spec.session.clientCapabilities`)."""

    SAMPLING = "sampling"
    """A completion of the client's model."""
    ELICITATION = "elicitation"
    """An answer of the client's user."""
    ROOTS = "roots"
    """The folders that the client works on."""
