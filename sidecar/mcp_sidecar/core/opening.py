"""How the conversation with a server process begins: which question comes first, and what its answer means.

`initialize` first, because a question that it does not know ends many a server; `server/discover` only when
that is refused as by a server without sessions, or when it was told that there are none.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_sidecar.core import frames, handshake
from mcp_sidecar.core.document import Problem
from mcp_sidecar.core.modern import discover, envelope, errors

AUTO: str = "Auto"
LEGACY: str = "Legacy"
MODERN: str = "Modern"
PROTOCOLS = (AUTO, LEGACY, MODERN)
INITIALIZE, DISCOVER = "initialize", "server/discover"
# How servers without sessions refuse `initialize`: they know no such method, or miss the envelope first.
_REFUSALS = (frames.METHOD_NOT_FOUND, frames.INVALID_PARAMS, errors.UNSUPPORTED_VERSION)


@dataclass(frozen=True, slots=True)
class Opened:
    """The server can be used; `answer` has the shape of an answer to `initialize`, whatever was asked."""

    answer: dict[str, Any]


def first(protocol: str) -> str:
    """The method of the first request."""
    return DISCOVER if protocol == MODERN else INITIALIZE


def params(method: str, client_capabilities: Iterable[str]) -> dict[str, Any]:
    """The params of that request; `client_capabilities` are what the server may ask clients for."""
    if method == INITIALIZE:
        return handshake.params(client_capabilities)
    return {"_meta": envelope.of({}, handshake.CLIENT_INFO)}


def read(protocol: str, asked: str, message: Mapping[str, Any], name: str) -> Opened | Problem | str:
    """What the answer to `asked` means: the server can be used, cannot be, or the method to ask next.

    `name` is for a server that does not say who it is.
    """
    if asked == DISCOVER:
        problem = discover.judge(message)
        return problem or Opened(discover.to_initialize(message["result"], name))
    error = message.get("error")
    code = error.get("code") if isinstance(error, Mapping) else None
    if protocol == AUTO and code in _REFUSALS:
        return DISCOVER
    problem = handshake.judge(message)
    return problem or Opened(dict(message["result"]))


def is_modern(revision: str) -> bool:
    """Whether a server that speaks this revision has no sessions."""
    return revision in envelope.REVISIONS
