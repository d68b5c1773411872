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
    if "error" in message:
        return Problem(
            "Initialize",
            "InitializeRefused",
            cut(f"The server refused initialize: {_told(message['error'])}", MAX_MESSAGE),
        )
    if "unusable" in message:
        text = cut(f"The answer to initialize cannot be used: {message['unusable']}", MAX_MESSAGE)
        return Problem("Initialize", "InvalidInitializeResult", text)
    result = message.get("result")
    if not isinstance(result, Mapping) or not isinstance(result.get("protocolVersion"), str):
        text = "The server's answer to initialize has no protocolVersion"
        return Problem("Initialize", "InvalidInitializeResult", text)
    version = result["protocolVersion"]
    if version not in revisions.LEGACY:
        known = ", ".join(revisions.LEGACY)
        text = f"The server speaks protocol revision {cut(version, _SHOWN)!r}; known are {known}"
        return Problem("Initialize", "UnsupportedProtocolVersion", text)
    if not jsontext.within_depth(result, MAX_DEPTH):
        text = f"The server's answer to initialize nests deeper than {MAX_DEPTH} levels"
        return Problem("Initialize", "InvalidInitializeResult", text)
    size = len(jsontext.dumps(result))
    if size > MAX_ANSWER_BYTES:
        text = f"The server's answer to initialize has {size} bytes; it may have {MAX_ANSWER_BYTES}"
        return Problem("Initialize", "InvalidInitializeResult", text)
    return None


def _told(error: Any) -> str:
    if isinstance(error, Mapping):
        return f"{error.get('message')} (code {error.get('code')})"
    return str(error)


def capabilities(result: Mapping[str, Any]) -> dict[str, Any]:
    """The capabilities a server declared."""
    declared = result.get("capabilities")
    return dict(declared) if isinstance(declared, Mapping) else {}
