"""What may be asked of a server without sessions, and what is only a way of the older revisions."""

from collections.abc import Mapping
from typing import Any

from mcp_sidecar.core import methods

DISCOVER, LISTEN = "server/discover", "subscriptions/listen"
# Requests that the revision has no more.
REMOVED = frozenset(
    {
        "initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe",
        "tasks/result", "tasks/list",
    }
)  # fmt: skip
# Requests whose answer may be that more is wanted of the client.
MAY_ASK = frozenset({"tools/call", "prompts/get", "resources/read"})
CACHEABLE = frozenset(
    {DISCOVER, "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"}
)
_TASKS = "io.modelcontextprotocol/tasks"


def may_request(method: str, capabilities: Mapping[str, Any], revision: str = "") -> bool:
    """Whether a request of this revision may go to a server with these capabilities, and of that revision."""
    if method in (DISCOVER, LISTEN):
        return True
    if method in REMOVED:
        return False
    if method.startswith("tasks/"):
        declared = capabilities.get("extensions")
        return isinstance(declared, Mapping) and _TASKS in declared
    return methods.may_request(method, revision, capabilities)
