"""Volumes of the pod, and where they are mounted."""

from typing import Any, Final

from mcp_operator.core.api import AuthType, MCPServerSpec
from mcp_operator.manifests import remote
from mcp_relay_api import paths

Json = dict[str, Any]

BRIDGE: Final = "bridge"
STATE: Final = "state"
SECRETS: Final = "secrets"
HOME: Final = "home"
TMP: Final = "tmp"
CACHE: Final = "package-cache"

HOME_DIR: Final = "/home/mcp"
TMP_DIR: Final = "/tmp"  # noqa: S108 - a volume of the pod's own
CACHE_DIR: Final = "/cache"
BRIDGE_SIZE: Final = "16Mi"
STATE_SIZE: Final = "16Mi"
HOME_SIZE: Final = "1Gi"
TMP_SIZE: Final = "512Mi"
_SECRET_MODE: Final = 0o440


def pod(spec: MCPServerSpec, secret: str) -> list[Json]:
    """All volumes: the operator's own, then the user's. `secret`: name of the operator's Secret.

    Beside a remote server's relay nothing else runs: it needs two.
    """
    ours = [
        {"name": BRIDGE, "emptyDir": {"medium": "Memory", "sizeLimit": BRIDGE_SIZE}},
        {"name": STATE, "emptyDir": {"medium": "Memory", "sizeLimit": STATE_SIZE}},
        {"name": SECRETS, "projected": {"defaultMode": _SECRET_MODE, "sources": _sources(spec, secret)}},
        {"name": HOME, "emptyDir": {"sizeLimit": HOME_SIZE}},
        {"name": TMP, "emptyDir": {"sizeLimit": TMP_SIZE}},
    ]
    if spec.remote is not None:
        return ours[1:3]
    claim = spec.cache.claim_name if spec.cache else None
    cache = [{"name": CACHE, "persistentVolumeClaim": {"claimName": claim}}] if claim else []
    return [*ours, *cache, *spec.volumes]


def relay_mounts(*, bridge: bool = True) -> list[Json]:
    """What the relay sees; without `bridge` there is no launcher."""
    shared = [{"name": BRIDGE, "mountPath": paths.BRIDGE_DIR}] if bridge else []
    return [
        *shared,
        {"name": STATE, "mountPath": paths.STATE_DIR},
        {"name": SECRETS, "mountPath": paths.SECRETS_DIR, "readOnly": True},
    ]


def server_mounts(spec: MCPServerSpec) -> list[Json]:
    """What the server sees: the socket, a writable home and /tmp unless the user mounts something there."""
    ours = [
        {"name": BRIDGE, "mountPath": paths.BRIDGE_DIR},
        {"name": HOME, "mountPath": HOME_DIR},
        {"name": TMP, "mountPath": TMP_DIR},
    ]
    if spec.cache:
        ours.append({"name": spec.cache.volume_name or CACHE, "mountPath": CACHE_DIR})
    taken = {_plain(mount.get("mountPath", "")) for mount in spec.volume_mounts}
    return [*(mount for mount in ours if mount["mountPath"] not in taken), *spec.volume_mounts]


def _plain(path: str) -> str:
    return "/" + path.strip("/")


def _sources(spec: MCPServerSpec, secret: str) -> list[Json]:
    own = [paths.ADMIN_TOKEN_FILE, paths.SIGNING_KEY_FILE]
    sources = []
    if spec.auth.type is AuthType.BEARER:
        if spec.auth.bearer is None:
            own.insert(0, paths.TOKEN_FILE)
        else:
            reference = spec.auth.bearer.secret_ref
            items = [{"key": reference.key, "path": paths.TOKEN_FILE}]
            sources.append({"secret": {"name": reference.name, "items": items}})
    items = [{"key": key, "path": key} for key in own]
    far = [] if spec.remote is None else remote.sources(spec.remote)
    return [{"secret": {"name": secret, "items": items}}, *sources, *far]
