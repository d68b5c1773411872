"""The container of the relay: a native sidecar that starts first; no probe delays the server."""

import json
from typing import Any, Final

from mcp_operator.core import naming
from mcp_operator.core.api import Audit, MCPServerSpec, OnServerRestart, Session, SessionMode
from mcp_operator.core.api.spec import Jwt
from mcp_operator.core.api.tools import Tools
from mcp_operator.manifests import names, remote, resources, security, volumes
from mcp_operator.manifests.identity import Owner
from mcp_operator.settings import Settings
from mcp_relay_api import paths

Json = dict[str, Any]

LIVENESS: Final[Json] = {
    "httpGet": {"path": paths.HEALTH_PATH, "port": paths.ADMIN_PORT},
    "periodSeconds": 5,
    "timeoutSeconds": 3,
    "failureThreshold": 3,
}


def build(owner: Owner, spec: MCPServerSpec, settings: Settings) -> Json:
    """The init container `relay` that keeps running."""
    container: Json = {
        "name": naming.RELAY_CONTAINER,
        "image": settings.relay_image,
        "imagePullPolicy": settings.image_pull_policy,
        "restartPolicy": "Always",
        "env": [{"name": name, "value": value} for name, value in _environment(owner, spec).items()],
        "ports": [
            {"name": "mcp", "containerPort": paths.MCP_PORT, "protocol": "TCP"},
            {"name": "admin", "containerPort": paths.ADMIN_PORT, "protocol": "TCP"},
        ],
        "lifecycle": {
            "postStart": {"exec": {"command": [paths.IMAGE_LAUNCHER_PATH, "install", paths.LAUNCHER_PATH]}}
        },
        "livenessProbe": LIVENESS,
        "resources": resources.relay(settings.relay_resources),
        "securityContext": security.relay(),
        "volumeMounts": volumes.relay_mounts(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    return {key: value for key, value in container.items() if value != ""}


def alone(owner: Owner, spec: MCPServerSpec, settings: Settings) -> Json:
    """The container `relay` of a remote server: no launcher is handed on, and nothing is shared."""
    container = build(owner, spec, settings)
    del container["restartPolicy"], container["lifecycle"]
    return {**container, "volumeMounts": volumes.relay_mounts(bridge=False)}


def _environment(owner: Owner, spec: MCPServerSpec) -> dict[str, str]:
    hosts = (*names.hosts(owner.name, owner.namespace), *spec.session.allowed_hosts)
    return _optional(spec.session) | {
        paths.ENV_SERVER_NAME: owner.name,
        paths.ENV_SERVER_NAMESPACE: owner.namespace,
        paths.ENV_SERVER_UID: owner.uid,
        paths.ENV_AUTH: spec.auth.type.value,
        paths.ENV_ALLOWED_HOSTS: ",".join(hosts),
        paths.ENV_HTTP_SSE: str(spec.session.http_sse).lower(),
        paths.ENV_PROTOCOL: spec.session.protocol.value,
        paths.ENV_CLIENT_CAPABILITIES: ",".join(spec.session.client_capabilities),
        paths.ENV_STARTUP_TIMEOUT: str(spec.session.startup_timeout_seconds),
        paths.ENV_CALL_TIMEOUT: str(spec.session.call_timeout_seconds),
        paths.ENV_IDLE_TIMEOUT: str(spec.session.idle_timeout_seconds),
        paths.ENV_MAX_CLIENTS: str(spec.session.max_clients),
        paths.ENV_MAX_MESSAGE_BYTES: str(spec.session.max_message_bytes),
        **_tools(spec.tools),
        **_issuer(spec.auth.jwt),
        **({} if spec.remote is None else {paths.ENV_REMOTE: remote.told(spec.remote, spec.recovery)}),
    }


def _optional(session: Session) -> dict[str, str]:
    """What is set only where it is not the default, so that a new operator replaces no pod for it."""
    found = {}
    if session.max_call_seconds:
        found[paths.ENV_MAX_CALL] = str(session.max_call_seconds)
    if session.on_server_restart is not OnServerRestart.RESUME:
        found[paths.ENV_ON_SERVER_RESTART] = session.on_server_restart.value
    if session.mode is not SessionMode.SHARED:
        found[paths.ENV_SESSION_MODE] = session.mode.value
        found[paths.ENV_MAX_PROCESSES] = str(session.max_processes)
    if session.audit is not Audit.NONE:
        found[paths.ENV_AUDIT] = session.audit.value
    limits = session.limits
    numbers = {
        paths.ENV_CALLS_PER_MINUTE: limits.calls_per_minute,
        paths.ENV_CALL_BURST: limits.burst,
        paths.ENV_CONCURRENT_CALLS: limits.concurrent_calls,
    }
    return found | {name: str(number) for name, number in numbers.items() if number}


def _issuer(jwt: Jwt | None) -> dict[str, str]:
    """Where the keys come from is the operator's business alone."""
    if jwt is None:
        return {}
    told = jwt.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"jwks_uri"})
    return {paths.ENV_JWT: json.dumps(told)}


def _tools(tools: Tools) -> dict[str, str]:
    wanted = {paths.ENV_TOOLS_ALLOW: tools.allow, paths.ENV_TOOLS_DENY: tools.deny}
    found = {name: json.dumps(globs) for name, globs in wanted.items() if globs}
    if tools.overrides:
        found[paths.ENV_TOOLS_OVERRIDES] = json.dumps([each.document() for each in tools.overrides])
    return found
