"""The envelope of a request: who asks, in which revision, and whether the HTTP headers say the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_sidecar.core import frames, interests, jsontext
from mcp_sidecar.core.modern import headers, members
from mcp_sidecar.core.modern.errors import HEADER_MISMATCH, UNSUPPORTED_VERSION, RejectionError

REVISION = "2026-07-28"
REVISIONS = (REVISION,)
PREFIX = "io.modelcontextprotocol/"
VERSION_KEY: str = PREFIX + "protocolVersion"
CAPABILITIES_KEY: str = PREFIX + "clientCapabilities"
INFO_KEY: str = PREFIX + "clientInfo"
LEVEL_KEY: str = PREFIX + "logLevel"
KEYS = frozenset({VERSION_KEY, CAPABILITIES_KEY, INFO_KEY, LEVEL_KEY})
SERVER_INFO_KEY: str = PREFIX + "serverInfo"
SUBSCRIPTION_KEY: str = PREFIX + "subscriptionId"

# Methods whose subject stands in a header, and the param that names it.
NAMED: Mapping[str, str] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
# Methods of an extension: the header may be missing, but must not say anything else.
_NAMED_BY_EXTENSIONS = {"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a request says of its sender."""

    capabilities: Mapping[str, Any]
    log_level: str | None = None
    """The level from which log messages are wanted; None: none are."""


def is_modern(params: Mapping[str, Any]) -> bool:
    """Whether a request of unclear revision means one without sessions."""
    meta = params.get("_meta")
    return isinstance(meta, Mapping) and VERSION_KEY in meta


def check(frame: frames.Frame, given: Mapping[bytes, bytes]) -> Envelope:
    """Hold a request against the rules of the revision.

    Args:
        frame: a request.
        given: HTTP headers, names in lower case.

    Raises:
        RejectionError: the first rule that it breaks.

    """
    meta = frame.params.get("_meta")
    if not isinstance(meta, Mapping):
        raise _incomplete(f"{VERSION_KEY} and {CAPABILITIES_KEY} are missing")
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if missing:
        raise _incomplete(f"{' and '.join(missing)} is missing")
    _check_headers(frame, meta[VERSION_KEY], given)
    if meta[VERSION_KEY] not in REVISIONS:
        data = {"supported": list(REVISIONS), "requested": meta[VERSION_KEY]}
        raise RejectionError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    if not isinstance(meta[CAPABILITIES_KEY], Mapping):
        raise _incomplete(f"{CAPABILITIES_KEY} is not an object")
    level = meta.get(LEVEL_KEY)
    if level is not None and level not in interests.LEVELS:
        raise _incomplete(f"{LEVEL_KEY} is none of {', '.join(interests.LEVELS)}")
    return Envelope(meta[CAPABILITIES_KEY], level)


def _incomplete(what: str) -> RejectionError:
    return RejectionError(frames.INVALID_PARAMS, f"Invalid params: in params._meta {what}")


def _check_headers(frame: frames.Frame, version: Any, given: Mapping[bytes, bytes]) -> None:
    if headers.text(given.get(b"mcp-protocol-version")) != version:
        raise _mismatch("MCP-Protocol-Version", "the revision in params._meta")
    if headers.text(given.get(b"mcp-method")) != frame.method:
        raise _mismatch("Mcp-Method", "the method")
    said = given.get(b"mcp-name")
    optional = _NAMED_BY_EXTENSIONS.get(frame.method) if said is not None else None
    name = NAMED.get(frame.method, optional)
    subject = frame.params.get(name) if name else None
    if subject is not None and headers.decoded(said) != subject:
        raise _mismatch("Mcp-Name", f"params.{name}")


def _mismatch(header: str, what: str) -> RejectionError:
    return RejectionError(HEADER_MISMATCH, f"Header mismatch: {header} is not what the body has as {what}")


def stripped(data: bytes, params: Mapping[str, Any], *more: str) -> bytes:
    """The request without its envelope, for a server with a handshake; `more` are params to leave out."""
    meta = params.get("_meta")
    if isinstance(meta, Mapping) and meta.keys() <= KEYS:
        left = None if more else members.without(data, "_meta", meta)
        if left is not None:
            return left
        more = (*more, "_meta")
    elif isinstance(meta, Mapping):
        data = members.edited(data, ("params", "_meta"), drop=KEYS)
    return members.edited(data, ("params",), drop=more) if more else data


def wrapped(data: bytes, params: Mapping[str, Any], entries: Mapping[str, bytes]) -> bytes:
    """The request with an envelope, for a server without sessions; `entries` are JSON."""
    if isinstance(params.get("_meta"), Mapping):
        return members.edited(data, ("params", "_meta"), drop=KEYS, put=entries)
    meta = written(entries)
    quick = members.in_front(data, "params", b'"_meta":' + meta) if params and "_meta" not in params else None
    if quick is not None:
        return quick
    if params or b'"params"' in data:
        return members.edited(data, ("params",), put={"_meta": meta})
    return members.edited(data, (), put={"params": b'{"_meta":%b}' % meta})


def of(capabilities: Mapping[str, Any], info: Any = None, level: str | None = None) -> dict[str, Any]:
    """The entries of an envelope."""
    entries: dict[str, Any] = {VERSION_KEY: REVISION, CAPABILITIES_KEY: capabilities}
    if info is not None:
        entries[INFO_KEY] = info
    if level is not None:
        entries[LEVEL_KEY] = level
    return entries


def texts(entries: Mapping[str, Any]) -> dict[str, bytes]:
    """Entries as JSON."""
    return {key: jsontext.dumps(entry) for key, entry in entries.items()}


def written(entries: Mapping[str, bytes]) -> bytes:
    """Entries as one object in JSON."""
    return b"{%b}" % b",".join(b'"%b":%b' % (key.encode(), raw) for key, raw in entries.items())
