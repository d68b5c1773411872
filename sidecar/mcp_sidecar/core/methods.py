"""What may be forwarded to a server that declared certain capabilities.

One unknown method ends a server built on an old SDK, whenever it comes. So a request is forwarded only when
the negotiated revision defines it and the server declared the capability it belongs to, or when its name lies
in a namespace that the server declared under `experimental`, `extensions` or as a capability of its own.
"""

from collections.abc import Mapping
from typing import Any

# Method -> path of the capability that a server must have declared; empty: every server has it.
REQUESTS: Mapping[str, tuple[str, ...]] = {
    "ping": (),
    "tools/list": ("tools",),
    "tools/call": ("tools",),
    "prompts/list": ("prompts",),
    "prompts/get": ("prompts",),
    "resources/list": ("resources",),
    "resources/read": ("resources",),
    "resources/templates/list": ("resources",),
    "resources/subscribe": ("resources", "subscribe"),
    "resources/unsubscribe": ("resources", "subscribe"),
    "logging/setLevel": ("logging",),
    "completion/complete": ("completions",),
    "tasks/get": ("tasks",),
    "tasks/result": ("tasks",),
    "tasks/list": ("tasks", "list"),
    "tasks/cancel": ("tasks", "cancel"),
}
# Requests that a server may send, and the capability that the client must have declared for it.
SERVER_REQUESTS: Mapping[str, str] = {
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
    "roots/list": "roots",
}
CLIENT_CAPABILITIES = tuple(SERVER_REQUESTS.values())
LIST_CHANGED: Mapping[str, str] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
}
_STANDARD = frozenset(
    {"tools", "prompts", "resources", "logging", "completions", "tasks", "experimental", "extensions"}
)


def may_request(method: str, revision: str, capabilities: Mapping[str, Any]) -> bool:
    """Whether a client's request may go to a server of this revision with these capabilities."""
    path = REQUESTS.get(method)
    if path is None:
        return method.partition("/")[0] in namespaces(capabilities)
    if method == "completion/complete" and revision == "2024-11-05":
        return True  # that revision defines the method but no capability for it
    return _declared(capabilities, path)


def may_notify(method: str, capabilities: Mapping[str, Any]) -> bool:
    """Whether a client's notification of an unknown kind may go to the server."""
    return method.removeprefix("notifications/").partition("/")[0] in namespaces(capabilities)


def namespaces(capabilities: Mapping[str, Any]) -> frozenset[str]:
    """First parts of method names that the server claims as its own: `vendor/x` claims `vendor` and `x`."""
    names = {name for name in capabilities if name not in _STANDARD}
    for group in ("experimental", "extensions"):
        declared = capabilities.get(group)
        for key in declared if isinstance(declared, Mapping) else ():
            names.update(part for part in (key, *key.split("/")) if part)
    return frozenset(names)


def list_changed(capabilities: Mapping[str, Any]) -> tuple[str, ...]:
    """The `list_changed` notifications that clients of this server expect."""
    return tuple(m for m, name in LIST_CHANGED.items() if _declared(capabilities, (name, "listChanged")))


def _declared(capabilities: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    node: Any = capabilities
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None  # parsed JSON: no need to ask for a Mapping
    return node is not None and node is not False if path else True
