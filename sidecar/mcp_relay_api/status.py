"""What the relay reports at `GET /status`, as the operator reads it.

The relay fills these shapes from plain dictionaries (pydantic would double its memory); a test holds
every document it can produce against these models. Times are seconds since the Unix epoch, UTC.
"""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

MAX_TOOLS = 128
MAX_DESCRIPTION = 256
MAX_STDERR_TAIL = 2048


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
    start_time: Annotated[float, Field(alias="startTime")]


class ProcessExit(_Model):
    """How the server process ended."""

    exit_code: Annotated[int, Field(alias="exitCode")]
    signal: str | None = None
    reason: str
    message: str = ""
    time: float
    stderr_tail: Annotated[str, Field(alias="stderrTail")] = ""


class SessionInfo(_Model):
    """What the server answered to `initialize`."""

    protocol_version: Annotated[str, Field(alias="protocolVersion")]
    server_info: Annotated[dict[str, Any], Field(alias="serverInfo")]
    capabilities: dict[str, Any]
    since: float
    adopted: bool
    """True when a restarted relay went on with the running session instead of initialising again."""


class RelayStatus(_Model):
    """One report. `revision` grows by one with every change within one `instance` of the relay."""

    instance: str
    revision: int
    state: RelayState
    since: float
    process: ProcessInfo | None = None
    exit: ProcessExit | None = None
    error: RelayError | None = None
    session: SessionInfo | None = None
    handshakes: int
    """How often this pod's server was sent `initialize`, over all relay restarts."""
    clients: int
    tool_count: Annotated[int | None, Field(alias="toolCount")] = None
    """None: not known; 0: known to have none."""
    tools_digest: Annotated[str | None, Field(alias="toolsDigest")] = None
    tools: tuple[ToolInfo, ...] = ()
