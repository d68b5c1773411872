"""The one handshake with a server process: what is asked, and whether the answer is usable."""

from collections.abc import Iterable, Mapping
from typing import Any

from mcp_sidecar.core import jsontext, revisions
from mcp_sidecar.core.document import MAX_MESSAGE, Problem, cut

MAX_ANSWER_BYTES = 1024 * 1024
"""Of the answer to `initialize`: it is kept, and every client gets it."""
MAX_DEPTH = 512
"""Of containers in it: it is written again for every client, and writers have a limit, too."""
_SHOWN = 64

CLIENT_INFO = {"name": "mcp-session-relay", "version": "0.1.0"}


def params(client_capabilities: Iterable[str] = ()) -> dict[str, Any]:
    """The params of `initialize`; `client_capabilities` are what the server may ask clients for.

    Roots come without `listChanged`, because what clients say of their roots is not passed on.
    """
    declared = {name: dict[str, Any]() for name in client_capabilities}
    return {"protocolVersion": revisions.LATEST, "capabilities": declared, "clientInfo": CLIENT_INFO}


def judge(message: Mapping[str, Any]) -> Problem | None:
    """Why the answer to `initialize` is not usable; None when it is."""
    problem = refusal(message, "initialize")
    if problem is not None:
        return problem
    result = message.get("result")
    if not isinstance(result, Mapping) or not isinstance(result.get("protocolVersion"), str):
        return invalid("The server's answer to initialize has no protocolVersion")
    version = result["protocolVersion"]
    if version not in revisions.LEGACY:
        known = ", ".join(revisions.LEGACY)
        text = f"The server speaks protocol revision {cut(version, _SHOWN)!r}; known are {known}"
        return Problem("Initialize", "UnsupportedProtocolVersion", text)
    return excess(result, "initialize")


def refusal(message: Mapping[str, Any], method: str) -> Problem | None:
    """Why there is no result; None when there may be one."""
    if "error" in message:
        text = cut(f"The server refused {method}: {told(message['error'])}", MAX_MESSAGE)
        return Problem("Initialize", "InitializeRefused", text)
    if "unusable" in message:
        return invalid(cut(f"The answer to {method} cannot be used: {message['unusable']}", MAX_MESSAGE))
    return None


def excess(result: Mapping[str, Any], method: str) -> Problem | None:
    """What there is too much of in a result; None when it can be kept."""
    if not jsontext.within_depth(result, MAX_DEPTH):
        return invalid(f"The server's answer to {method} nests deeper than {MAX_DEPTH} levels")
    size = len(jsontext.dumps(result))
    if size > MAX_ANSWER_BYTES:
        return invalid(f"The server's answer to {method} has {size} bytes; it may have {MAX_ANSWER_BYTES}")
    return None


def invalid(text: str) -> Problem:
    """The error of a server whose answer makes no sense."""
    return Problem("Initialize", "InvalidInitializeResult", text)


def told(error: Any) -> str:
    """What an error answer says, for people."""
    if isinstance(error, Mapping):
        return f"{error.get('message')} (code {error.get('code')})"
    return str(error)


def capabilities(result: Mapping[str, Any]) -> dict[str, Any]:
    """The capabilities a server declared."""
    declared = result.get("capabilities")
    return dict(declared) if isinstance(declared, Mapping) else {}
