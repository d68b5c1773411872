"""What the relay reports at `GET /status`, as the operator reads it.

The relay fills these shapes from plain dictionaries (pydantic would double its memory); a test holds
every document it can produce against these models. Times are seconds since the Unix epoch, UTC. Numbers and
short texts are bounded: a document beyond the bounds is none. Texts for people are cut where they are shown.
"""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

MAX_TOOLS = 128
MAX_DESCRIPTION = 256
MAX_STDERR_TAIL = 2048
MAX_PROGRESS = 256
MAX_SIGNAL = 32
# The years 1970 to 2099: what is later, or no number, is no time that a clock told.
MAX_TIME = 4_102_444_800
EXIT_CODES = range(-1, 256)

_SHORT = Field(max_length=128)
Moment = Annotated[float, Field(ge=0, le=MAX_TIME, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, lt=2**31)]


class RelayState(StrEnum):
    """The relay's one session with the server process."""

    CONNECTING = "Connecting"
    """No usable session yet: waiting for the launcher, or for the answer to `initialize`."""
    CONNECTED = "Connected"
    """The session is initialised now."""
    DROPPED = "Dropped"
    """The connection to the launcher broke, or the server closed stdout; no end of the process is known."""
    REFUSED = "Refused"
    """The server answered `initialize` with an error or with nothing usable; `error` says what."""
    EXITED = "Exited"
    """The launcher reported the end of the process; `exit` says how."""
    TERMINATING = "Terminating"
    """Shutting down: no new calls."""


class ErrorPhase(StrEnum):
    """The stage in which an error arose."""

    VALIDATION = "Validation"
    """The spec, or something that it refers to, is not usable."""
    ADMISSION = "Admission"
    """The API server refused an object that the server needs."""
    SANDBOX = "Sandbox"
    """The node could not make the pod's sandbox."""
    SCHEDULING = "Scheduling"
    """No node took the pod."""
    IMAGE_PULL = "ImagePull"
    """The image could not be pulled."""
    CONTAINER_START = "ContainerStart"
    """The node could not make or start the container."""
    PROCESS_START = "ProcessStart"
    """The container ran but the server's command could not be started."""
    PROCESS = "Process"
    """The server process ended."""
    TRANSPORT = "Transport"
    """The connection to the running process broke, or the relay is out of reach."""
    INITIALIZE = "Initialize"
    """The server did not answer `initialize` in time, or not usably."""
    LIST_TOOLS = "ListTools"
    """The session is initialised but the tools could not be listed."""


class _Model(BaseModel):
    # Unknown fields are ignored: during an upgrade a newer relay may report to an older operator.
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class ToolInfo(_Model):
    """One tool as the status of the resource shows it."""

    name: str
    title: str | None = None
    description: str | None = None


class RelayError(_Model):
    """Why the session cannot be used."""

    phase: ErrorPhase
    reason: str
    message: str


class ProcessInfo(_Model):
    """The server process as its launcher reported it."""

    incarnation: str
    pid: int
    start_time: Annotated[Moment, Field(alias="startTime")]


class ProcessExit(_Model):
    """How the server process ended."""

    exit_code: Annotated[int, Field(alias="exitCode", ge=EXIT_CODES.start, lt=EXIT_CODES.stop)]
    signal: Annotated[str, Field(max_length=MAX_SIGNAL)] | None = None
    reason: str
    message: str = ""
    time: Moment
    stderr_tail: Annotated[str, Field(alias="stderrTail")] = ""


class SessionInfo(_Model):
    """What the server answered to `initialize`."""

    protocol_version: Annotated[str, Field(alias="protocolVersion")]
    server_info: Annotated[dict[str, Any], Field(alias="serverInfo")]
    capabilities: dict[str, Any]
    since: Moment
    adopted: bool
    """True when a restarted relay went on with the running session instead of initialising again."""


class KeysInfo(_Model):
    """The keys with which the relay verifies clients' signed tokens."""

    digest: Annotated[str, _SHORT] | None = None
    """SHA-256 of the set in use, hexadecimal; None: it has none, and nobody is let in."""
    unknown: Count = 0
    """Grows when tokens name a key that is not in the set; not with each of them."""
    usable: Count | None = None
    """How many keys of the set can verify signatures; 0: nobody is let in. None: older relays do not say."""
    source: Annotated[str, _SHORT] = ""
    """The `source` of the set as the operator brought it; empty: it had none."""


class RelayStatus(_Model):
    """One report. `revision` grows by one with every change within one `instance` of the relay."""

    instance: Annotated[str, _SHORT]
    revision: Annotated[int, Field(ge=0, lt=2**63)]
    state: RelayState
    since: Moment
    process: ProcessInfo | None = None
    exit: ProcessExit | None = None
    error: RelayError | None = None
    session: SessionInfo | None = None
    progress: str = ""
    """While Connecting: the last line that the process wrote to stderr, its secrets hidden."""
    handshakes: Count
    """How often this pod's server was sent `initialize`, over all relay restarts."""
    clients: Count
    processes: Count | None = None
    """Processes that belong to single clients; None: all clients share one."""
    process_failure: Annotated[ProcessExit | None, Field(alias="processFailure")] = None
    """How the last process of a client failed: it ended by itself, and not with code 0. None: none has since
    the relay started."""
    tool_count: Annotated[Count | None, Field(alias="toolCount")] = None
    """None: not known; 0: known to have none."""
    tools_digest: Annotated[Annotated[str, _SHORT] | None, Field(alias="toolsDigest")] = None
    tools: tuple[ToolInfo, ...] = ()
    keys: KeysInfo | None = None
    """None: clients need no signed tokens."""
