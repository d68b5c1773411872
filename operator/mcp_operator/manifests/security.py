"""Security settings that pass Pod Security "restricted"; the user's are laid over those of server and pod."""

from typing import Any, Final

from mcp_operator.manifests.merge import merge

Json = dict[str, Any]

RELAY_USER: Final = 1000
SERVER_USER: Final = 2000
# One group for both containers, so that the relay may use the socket that the launcher makes.
GROUP: Final = 3000

_CONTAINER: Final[Json] = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
_IDENTITY: Final = ("runAsUser", "runAsGroup", "runAsNonRoot", "seccompProfile")


def pod(theirs: Json | None) -> Json:
    """Settings of the whole pod."""
    ours = {"runAsNonRoot": True, "fsGroup": GROUP, "seccompProfile": {"type": "RuntimeDefault"}}
    return merge({**ours, "fsGroupChangePolicy": "OnRootMismatch"}, theirs)


def server(theirs: Json | None, pods: Json | None) -> Json:
    """Settings of the server's container: the container's own win over those the user gave the pod."""
    ours = {**_CONTAINER, "runAsUser": SERVER_USER, "runAsGroup": GROUP}
    inherited = {key: value for key, value in (pods or {}).items() if key in _IDENTITY}
    return merge({**ours, **inherited}, theirs)


def relay() -> Json:
    """Settings of the relay's container, which nobody changes."""
    return {**_CONTAINER, "runAsUser": RELAY_USER, "runAsGroup": GROUP}
