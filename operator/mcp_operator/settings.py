"""Settings of the operator, from the environment."""

from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_RELAY_IMAGE = "mcp-session-relay:dev"
DEFAULT_RUNTIME_IMAGE = "mcp-session-runtime:dev"
PULL_POLICIES = ("", "Always", "IfNotPresent", "Never")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


class SettingsError(Exception):
    """A setting has no sense; the message names it and the cure."""


@dataclass(frozen=True)
class Settings:
    """All that the operator is told. Times in seconds."""

    relay_image: str = DEFAULT_RELAY_IMAGE
    runtime_image: str = DEFAULT_RUNTIME_IMAGE
    image_pull_policy: str = ""
    """Pull policy of the two images above; "": Kubernetes' default."""
    namespaces: tuple[str, ...] = ()
    """Namespaces that are served; (): all."""
    log_level: str = "INFO"
    health_port: int = 8080
    metrics_port: int = 8081
    concurrency: int = 32
    """How many resources are reconciled at once."""
    poll_wait: float = 55.0
    """How long a relay may hold an unchanged answer back."""
    poll_spacing: float = 5.0
    """Time between two polls of a relay that does not answer."""
    insecure_registries: tuple[str, ...] = ()
    """Hosts of registries that are asked over plain HTTP."""
    registry_ca: str = ""
    """File with more certificate authorities that registries may have, in PEM; "": none."""
    audit_interval: float = 300.0
    """How often the caches are compared with the API server."""


def from_environment(environment: Mapping[str, str]) -> Settings:
    """Read the settings.

    Raises:
        SettingsError: a value has no sense.

    """
    policy = environment.get("MCP_OPERATOR_IMAGE_PULL_POLICY", "")
    if policy not in PULL_POLICIES:
        raise SettingsError(
            f"MCP_OPERATOR_IMAGE_PULL_POLICY={policy!r} is not one of {', '.join(PULL_POLICIES[1:])}"
        )
    level = environment.get("MCP_OPERATOR_LOG_LEVEL", "INFO").upper()
    if level not in LOG_LEVELS:
        raise SettingsError(f"MCP_OPERATOR_LOG_LEVEL={level!r} is not one of {', '.join(LOG_LEVELS)}")
    return Settings(
        relay_image=environment.get("MCP_OPERATOR_RELAY_IMAGE") or DEFAULT_RELAY_IMAGE,
        runtime_image=environment.get("MCP_OPERATOR_RUNTIME_IMAGE") or DEFAULT_RUNTIME_IMAGE,
        image_pull_policy=policy,
        namespaces=tuple(environment.get("MCP_OPERATOR_NAMESPACES", "").replace(",", " ").split()),
        insecure_registries=tuple(
            environment.get("MCP_OPERATOR_INSECURE_REGISTRIES", "").replace(",", " ").split()
        ),
        registry_ca=environment.get("MCP_OPERATOR_REGISTRY_CA", ""),
        log_level=level,
        health_port=_port(environment, "MCP_OPERATOR_HEALTH_PORT", 8080),
        metrics_port=_port(environment, "MCP_OPERATOR_METRICS_PORT", 8081),
    )


def _port(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "")
    if not text:
        return default
    if not text.isdecimal() or not 0 <= int(text) <= 65_535:
        raise SettingsError(f"{name}={text!r} is not a port (0 to 65535)")
    return int(text)
