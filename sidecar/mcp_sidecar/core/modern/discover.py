"""`server/discover` and `initialize`: the same facts in two shapes."""

from collections.abc import Mapping
from typing import Any

from mcp_sidecar.core import handshake
from mcp_sidecar.core.document import MAX_MESSAGE, Problem, cut
from mcp_sidecar.core.modern import envelope

# Capabilities that the older revisions have and this one does not.
_REMOVED = frozenset({"tasks"})


def judge(message: Mapping[str, Any]) -> Problem | None:
    """Why a server's answer to `server/discover` is not usable; None when it is."""
    problem = handshake.refusal(message, "server/discover")
    if problem is not None:
        return problem
    result = message.get("result")
    versions = result.get("supportedVersions") if isinstance(result, Mapping) else None
    if not isinstance(result, Mapping) or not isinstance(versions, list):
        return handshake.invalid("The server's answer to server/discover has no supportedVersions")
    if not any(version in envelope.REVISIONS for version in versions):
        shown = cut(", ".join(map(str, versions)), MAX_MESSAGE // 2)
        text = f"The server speaks protocol revisions {shown}; known are {', '.join(envelope.REVISIONS)}"
        return Problem("Initialize", "UnsupportedProtocolVersion", text)
    return handshake.excess(result, "server/discover")


def to_initialize(result: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What a usable answer to `server/discover` says, as an answer to `initialize`.

    `name` is for a server that does not say who it is.
    """
    meta = result.get("_meta")
    info = meta.get(envelope.SERVER_INFO_KEY) if isinstance(meta, Mapping) else None
    answer: dict[str, Any] = {
        "protocolVersion": envelope.REVISION,
        "capabilities": handshake.capabilities(result),
        "serverInfo": info if isinstance(info, Mapping) else {"name": name, "version": ""},
    }
    if isinstance(result.get("instructions"), str):
        answer["instructions"] = result["instructions"]
    return answer


def from_initialize(answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer to `server/discover` with what a server answered to `initialize`."""
    declared = handshake.capabilities(answer)
    result: dict[str, Any] = {
        "resultType": "complete",
        "supportedVersions": list(envelope.REVISIONS),
        "capabilities": {name: value for name, value in declared.items() if name not in _REMOVED},
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {envelope.SERVER_INFO_KEY: answer.get("serverInfo")},
    }
    if isinstance(answer.get("instructions"), str):
        result["instructions"] = answer["instructions"]
    return result
