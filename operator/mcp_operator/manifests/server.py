"""The container of the stdio server: the launcher runs the command of the resource."""

from typing import Any

from mcp_operator.core import naming
from mcp_operator.core.api import MCPServerSpec, SessionMode
from mcp_operator.manifests import environment, resources, security, volumes
from mcp_operator.settings import Settings
from mcp_relay_api import paths

Json = dict[str, Any]


def image(spec: MCPServerSpec, settings: Settings) -> str:
    """Image that the server runs from; "" for a remote one."""
    if spec.remote is not None:
        return ""
    return spec.image or settings.runtime_image


def build(spec: MCPServerSpec, settings: Settings) -> Json:
    """The container `server`."""
    container: Json = {
        "name": naming.SERVER_CONTAINER,
        "image": image(spec, settings),
        "command": [*_launcher(spec), *spec.command],
        "args": list(spec.args),
        "env": environment.build(spec),
        "envFrom": list(spec.env_from),
        "resources": resources.server(spec.resources),
        "securityContext": security.server(spec.security_context, spec.pod_security_context),
        "volumeMounts": volumes.server_mounts(spec),
        "terminationMessagePolicy": "File",
        "imagePullPolicy": spec.image_pull_policy or ("" if spec.image else settings.image_pull_policy),
        "workingDir": spec.working_dir or "",
    }
    return {key: value for key, value in container.items() if value not in ("", [])}


def started(container: Json, entry: tuple[str, ...]) -> Json:
    """The container with what its image starts. Images mean their words as they are: no `$(NAME)` in them."""
    literal = [word.replace("$(", "$$(") for word in entry]
    return {**container, "command": [*container["command"], *literal]} if entry else container


def _launcher(spec: MCPServerSpec) -> list[str]:
    return [
        paths.LAUNCHER_PATH,
        "run",
        "--socket",
        paths.SOCKET_PATH,
        "--max-line-bytes",
        str(spec.session.max_message_bytes),
        "--plain-env",
        ",".join(environment.plain_names(spec)),
        *_more_processes(spec),
        "--",
    ]


def _more_processes(spec: MCPServerSpec) -> list[str]:
    """Where the relay asks for processes beside the first one."""
    if spec.session.mode is SessionMode.SHARED:
        return []
    limits = resources.server(spec.resources)["limits"]
    memory = resources.process_memory(limits, spec.session.process_memory_limit)
    return [
        *("--control", paths.CONTROL_PATH, "--max-processes", str(spec.session.max_processes)),
        *(("--memory-limit", str(memory)) if memory else ()),
    ]
