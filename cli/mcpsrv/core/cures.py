"""What to do about each reason, and about what a server's last lines give away."""

import re
from dataclasses import dataclass
from typing import Final

from mcp_operator.core.api import Reason

_FIX_COMMAND: Final = (
    "Correct spec.command. The default image has npx, node, uvx and python3; for anything else name an "
    "image that has the program in spec.image."
)
_SERVER_DIES: Final = (
    "The server itself ends. Read its last lines above; `mcpsrv logs {name}` has all of them. Most often a "
    "variable is missing in spec.env, or an argument in spec.command is wrong."
)
_SECRETS: Final = (
    "Create it, or correct the name in spec; the operator goes on by itself as soon as it is there."
)

# One entry for each reason; "" where nothing is to be done.
BY_REASON: Final[dict[str, str]] = {
    Reason.NOT_OBSERVED: "Nothing has been seen of it yet: is the operator running? `kubectl get pods -n "
    "mcp-system`.",
    Reason.VALID: "",
    Reason.INVALID_SPEC: "Change the field that the message names, and apply again.",
    Reason.SECRET_NOT_FOUND: _SECRETS,
    Reason.SECRET_KEY_NOT_FOUND: "Add the key to the Secret, or correct it in spec; the operator goes on "
    "by itself.",
    Reason.CONFIG_MAP_NOT_FOUND: _SECRETS,
    Reason.CONFIG_MAP_KEY_NOT_FOUND: "Add the key to the ConfigMap, or correct it in spec; the operator "
    "goes on by itself.",
    Reason.INVALID_TOKEN: "Put a token into the key that spec.auth.bearer.secretRef names; it is picked up "
    "by itself.",
    Reason.KEYS_UNAVAILABLE: "Correct spec.auth.jwt.issuer, or set spec.auth.jwt.jwksURI; an issuer with a "
    "certificate of a private authority needs the chart's issuers.caBundle. It is asked again by itself.",
    Reason.OWNERSHIP_CONFLICT: "Rename or delete the object that the message names, or give the MCPServer "
    "another name.",
    Reason.POD_RUNNING: "",
    Reason.POD_PENDING: "Wait; the pod is on its way.",
    Reason.POD_MISSING: "Wait; the pod is about to be made. If it stays so, look at the operator's log.",
    Reason.POD_DELETED: "Wait; somebody deleted the pod, the next one follows by itself.",
    Reason.UNSCHEDULABLE: "The message says what is missing. A PersistentVolumeClaim: create it, or correct "
    "its name in spec.volumes or spec.cache. Room: lower spec.resources.requests, correct spec.nodeSelector "
    "or spec.tolerations, or add a node.",
    Reason.IMAGE_PULL_FAILED: "Correct spec.image, or name a Secret with the registry's credentials in "
    "spec.imagePullSecrets.",
    Reason.ENTRY_POINT_UNKNOWN: "Write what the image starts into spec.command, or let the operator read "
    "the registry: name a Secret with its credentials in spec.imagePullSecrets.",
    Reason.INVALID_IMAGE_NAME: "Correct spec.image: it should read registry/name:tag.",
    Reason.CONTAINER_CREATE_FAILED: "If the message speaks of root: set spec.securityContext.runAsUser to "
    "a number above 0, or use an image that has a plain user. Otherwise check spec.volumes and "
    "spec.volumeMounts.",
    Reason.CONTAINER_START_FAILED: "Check spec.image and spec.workingDir; `kubectl describe pod {pod}` has "
    "the node's words.",
    Reason.SANDBOX_FAILED: "Correct spec.runtimeClassName, or have the RuntimeClass installed on the node.",
    Reason.ADMISSION_REFUSED: "The message says what was refused and why. An invalid value: correct that "
    "field of spec. The namespace's policy: adapt spec to it, or the policy.",
    Reason.QUOTA_EXCEEDED: "Lower spec.resources, delete what is not needed in the namespace, or raise its "
    "quota.",
    Reason.LIMIT_RANGE_EXCEEDED: "Set spec.resources within what the namespace's LimitRange allows; the "
    "message names it.",
    Reason.EVICTED: "The node ran short of something; the pod is replaced. If it comes again, raise "
    "spec.resources.requests.",
    Reason.NODE_LOST: "Nothing: the pod is made again on another node.",
    Reason.COMMAND_NOT_FOUND: _FIX_COMMAND,
    Reason.PERMISSION_DENIED: "The file may not be executed by the server's user: name its interpreter "
    "first in spec.command, or correct the image.",
    Reason.START_FAILED: _FIX_COMMAND,
    Reason.PROCESS_EXITED: _SERVER_DIES,
    Reason.PROCESS_SIGNALED: "A signal ended the server. SIGKILL is often memory: raise "
    "spec.resources.limits.memory. SIGSEGV and SIGABRT are faults of the server: try another version.",
    Reason.STDOUT_CLOSED: "The server closed its stdout and can answer no more: a fault of the server; try "
    "another version.",
    Reason.STDIN_CLOSED: "The server closed its stdin and hears no more calls: a fault of the server; try "
    "another version.",
    Reason.OOM_KILLED: "Raise spec.resources.limits.memory.",
    Reason.INITIALIZED: "",
    Reason.INITIALIZING: "Wait: the first start of npx and uvx downloads the package. `mcpsrv logs {name} "
    "-f` shows how far it is.",
    Reason.STARTUP_TIMEOUT: "Check that spec.command starts a server that speaks MCP on stdin and stdout, "
    "not over HTTP. If it only needs longer, for example for a download: raise "
    "spec.session.startupTimeoutSeconds.",
    Reason.INITIALIZE_FAILED: "The program answered, but not as an MCP server: check that spec.command "
    "starts the stdio server.",
    Reason.LIST_TOOLS_FAILED: "The server refuses to list its tools: read its log, and try another version "
    "of it.",
    Reason.TOOL_OVERRIDES_UNMATCHED: "Correct spec.tools.overrides: the name has to be one that the server "
    "itself gives a tool, the rename one that it gives to none.",
    Reason.TRANSPORT_DROPPED: "Nothing: the connection is restored by itself, the server keeps running.",
    Reason.REMOTE_UNREACHABLE: "Is spec.remote.url right, and the server up? For an address inside the "
    "cluster choose spec.network.egress Custom, or All: Internet leads to none. It is tried again by itself.",
    Reason.REMOTE_UNAVAILABLE: "Nothing here: the remote server is asked again by itself.",
    Reason.REMOTE_DENIED: "Correct the value that spec.remote.headersFrom names; a change is taken "
    "up by itself.",
    Reason.REMOTE_REFUSED: "Correct spec.remote.url, or spec.remote.transport; the message says "
    "what is there.",
    Reason.SESSION_LOST: "Nothing: a new session is made by itself, calls wait for it.",
    Reason.RELAY_UNREACHABLE: "Nothing for a moment: the relay is restarted by itself. If it stays so, a "
    "NetworkPolicy may keep the operator from port 8081 of the pod.",
    Reason.RELAY_FAILED: "Nothing for a moment: the node starts the relay again. If its memory was too "
    "small, raise relay.resources in the chart's values.",
    Reason.RELAY_UNREADABLE: "The relay's image does not fit the operator's: install the chart with images "
    "of one version.",
    Reason.CONNECTED: "",
    Reason.CREATED: "",
    Reason.RECREATING: "Wait; a new pod is being made.",
    Reason.BACKING_OFF: "The next attempt comes by itself at the time above; a change of spec starts at "
    "once.",
    Reason.BACKOFF_EXHAUSTED: "Correct the cause; the change itself starts a new attempt. Without one: "
    "`mcpsrv restart {name}`.",
    Reason.CONFIGURATION_CHANGED: "",
    Reason.SUSPENDED: "It is switched off: set spec.suspend to false to start it.",
    Reason.TERMINATING: "It is being deleted.",
}


@dataclass(frozen=True)
class Clue:
    """A pattern in what a server wrote, and what it means."""

    pattern: re.Pattern[str]
    advice: str


def _clue(pattern: str, advice: str) -> Clue:
    return Clue(re.compile(pattern, re.IGNORECASE), advice)


CLUES: Final = (
    _clue(
        r"E404|404 not found.*(?:npm|registry)|not found in the package registry|no matching distribution|"
        r"was not found in the npm registry",
        "The package's name or version in spec.command does not exist in the registry.",
    ),
    _clue(
        r"No solution found|ResolutionImpossible|ERESOLVE",
        "The package's dependencies do not fit together: pin another version of it in spec.command.",
    ),
    _clue(
        r"ENOTFOUND|EAI_AGAIN|getaddrinfo|Name or service not known|Temporary failure in name resolution",
        "A host name cannot be resolved: check it, and spec.network.egress: None allows no DNS either.",
    ),
    _clue(
        r"ECONNREFUSED|Connection refused|ETIMEDOUT|Connection timed out|Network is unreachable|EHOSTUNREACH",
        "A host cannot be reached: `localhost` is the pod itself; private addresses need spec.network.egress "
        "All or Custom, the default reaches public ones only.",
    ),
    _clue(
        r"self.signed certificate|CERTIFICATE_VERIFY_FAILED|unable to (?:verify|get local "
        r"issuer)|UnknownIssuer",
        "A certificate is not trusted: mount your CA and name it in NODE_EXTRA_CA_CERTS or SSL_CERT_FILE "
        "in spec.env.",
    ),
    _clue(
        r"EROFS|Read-only file system",
        "The server writes outside of its home and /tmp: mount a volume there with spec.volumes and "
        "spec.volumeMounts.",
    ),
    _clue(
        r"EACCES|Permission denied",
        "The server's user may not read or write a path: mount a volume there, or set the user in "
        "spec.securityContext.",
    ),
    _clue(r"ENOSPC|No space left", "A volume is full: give the server a larger one with spec.volumes."),
    _clue(
        r"heap out of memory|MemoryError|Cannot allocate memory|ENOMEM",
        "The server ran out of memory: raise spec.resources.limits.memory.",
    ),
    _clue(r"exec format error", "The image or package is for another processor: name one for the node's."),
    _clue(
        r"\b401\b|Unauthorized|invalid (?:api[ _-]?key|token|credentials)|authentication failed|bad "
        r"credentials",
        "The service behind refuses the credentials: check the values in the Secret that spec.env refers to.",
    ),
    _clue(
        r"(?-i:[A-Z][A-Z0-9]*_[A-Z0-9_]+)\b.{0,40}(?:is not set|not set|required|missing|must be)|"
        r"(?:missing|required|provide|set)\b.{0,60}\b(?-i:[A-Z][A-Z0-9]*_[A-Z0-9_]+)",
        "A variable is missing: add it to spec.env, a secret one with valueFrom.secretKeyRef.",
    ),
    _clue(
        r"ENOENT|No such file or directory",
        "A file or folder does not exist in the pod: paths of your computer do not; mount a volume there.",
    ),
    _clue(
        r"ModuleNotFoundError|Cannot find module|ERR_MODULE_NOT_FOUND|ImportError",
        "A module is missing: the package is broken or needs an extra; try `uvx --with MODULE …` or "
        "another version.",
    ),
    _clue(
        r"(?:listening|running|started|uvicorn running) (?:on|at) (?:port|https?://)",
        "The server seems to speak HTTP: it must be started so that it speaks MCP on stdin and stdout.",
    ),
    _clue(
        r"^usage:|unrecognized arguments|unknown option|missing required argument",
        "Check the arguments in spec.command.",
    ),
)


def for_reason(reason: str, name: str, pod: str = "") -> str:
    """What to do about this reason; "" for nothing, and for a reason of a newer operator."""
    return BY_REASON.get(reason, "").format(name=name, pod=pod or f"mcp-{name}")


def for_output(text: str) -> tuple[str, ...]:
    """What the last lines of a server give away, most telling first."""
    return tuple(clue.advice for clue in CLUES if clue.pattern.search(text))
