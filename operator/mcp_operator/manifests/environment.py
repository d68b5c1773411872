"""The server's environment: writable places for the tools that start servers; the user's values win."""

from typing import Any, Final

from mcp_operator.core.api import MCPServerSpec
from mcp_operator.manifests.volumes import CACHE_DIR, HOME_DIR, TMP_DIR

Json = dict[str, Any]

DEFAULTS: Final = {
    "HOME": HOME_DIR,
    "TMPDIR": TMP_DIR,
    "XDG_CACHE_HOME": f"{HOME_DIR}/.cache",
    "XDG_CONFIG_HOME": f"{HOME_DIR}/.config",
    "XDG_DATA_HOME": f"{HOME_DIR}/.local/share",
    "npm_config_cache": f"{HOME_DIR}/.npm",
    "npm_config_update_notifier": "false",
    "UV_CACHE_DIR": f"{HOME_DIR}/.cache/uv",
    "UV_TOOL_DIR": f"{HOME_DIR}/.local/share/uv/tools",
    "UV_PYTHON_INSTALL_DIR": f"{HOME_DIR}/.local/share/uv/python",
    "PIP_CACHE_DIR": f"{HOME_DIR}/.cache/pip",
    "PYTHONUNBUFFERED": "1",
}
# With a cache that outlives the pod. npm then takes what it has without asking its registry whether there is
# something newer; uv asks its index again only when the index's answer is older than that allows.
CACHED: Final = {
    "XDG_CACHE_HOME": CACHE_DIR,
    "npm_config_cache": f"{CACHE_DIR}/npm",
    "npm_config_prefer_offline": "true",
    "UV_CACHE_DIR": f"{CACHE_DIR}/uv",
    "UV_PYTHON_INSTALL_DIR": f"{CACHE_DIR}/uv-python",
    "PIP_CACHE_DIR": f"{CACHE_DIR}/pip",
}
# Variables that images and Kubernetes set; nothing to hide in them.
_COMMON: Final = (
    "PATH", "HOSTNAME", "TERM", "LANG", "LC_ALL", "USER", "SHELL", "PWD", "NODE_VERSION", "PYTHON_VERSION",
    "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBERNETES_SERVICE_PORT_HTTPS", "KUBERNETES_PORT",
    "KUBERNETES_PORT_443_TCP", "KUBERNETES_PORT_443_TCP_ADDR", "KUBERNETES_PORT_443_TCP_PORT",
    "KUBERNETES_PORT_443_TCP_PROTO",
)  # fmt: skip


def build(spec: MCPServerSpec) -> list[Json]:
    """The list `env` of the server's container."""
    named = {variable.get("name") for variable in spec.env}
    ours = [{"name": name, "value": value} for name, value in _defaults(spec).items() if name not in named]
    return [*ours, *spec.env]


def plain_names(spec: MCPServerSpec) -> tuple[str, ...]:
    """Variables whose values may be shown: they stand in the resource, or are common knowledge.

    Everything else that the server gets (from Secrets, from `envFrom`) is masked in what is shown of stderr.
    """
    theirs = {str(variable.get("name")): _plain(variable) for variable in spec.env}
    ours = [name for name in (*_COMMON, *_defaults(spec)) if theirs.get(name, True)]
    return tuple(sorted({*ours, *(name for name, plain in theirs.items() if plain)}))


def _defaults(spec: MCPServerSpec) -> dict[str, str]:
    return DEFAULTS | CACHED if spec.cache else DEFAULTS


def _plain(variable: Json) -> bool:
    source = variable.get("valueFrom")
    if source is not None:
        return "secretKeyRef" not in source
    # A value may be put together from variables that are secret.
    return "$(" not in str(variable.get("value") or "")
