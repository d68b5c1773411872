"""Settings of the operator, from the environment."""

import ipaddress
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_operator.core import quantity

Json = dict[str, Any]

DEFAULT_RELAY_IMAGE = "mcp-session-relay:dev"
DEFAULT_RUNTIME_IMAGE = "mcp-session-runtime:dev"
PULL_POLICIES = ("", "Always", "IfNotPresent", "Never")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


_DNS_PORTS: Final = [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]
# Where kubeadm, kind and most clouds have the cluster's DNS, and the address of its cache on each node.
CLUSTER_DNS: Final[tuple[Json, ...]] = (
    {
        "to": [
            {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
                "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
            },
            {"ipBlock": {"cidr": "169.254.20.10/32"}},
        ],
        "ports": _DNS_PORTS,
    },
)


class SettingsError(Exception):
    """A setting has no sense; the message names it and the cure."""


@dataclass(frozen=True)
class NetworkSettings:
    """What NetworkPolicies say about the cluster."""

    namespace: str = ""
    """Where the operator's pod runs; "": outside the cluster."""
    pod_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that choose the operator's pods."""
    dns: tuple[Json, ...] = CLUSTER_DNS
    """NetworkPolicyEgressRules that lead to the cluster's DNS."""
    not_internet: tuple[str, ...] = ()
    """CIDRs that the egress class Internet leaves out beside those that no public address has."""
    admin_from: tuple[Json, ...] = ()
    """NetworkPolicyPeers beside the operator that may reach the relays' port of health and metrics."""


@dataclass(frozen=True)
class Settings:
    """All that the operator is told. Times in seconds."""

    relay_image: str = DEFAULT_RELAY_IMAGE
    runtime_image: str = DEFAULT_RUNTIME_IMAGE
    relay_resources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Requests and limits of every relay; what is not named gets the default."""
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
    """How long a relay may hold an unchanged answer back; it gives signs of life meanwhile."""
    poll_spacing: float = 5.0
    """Time between two polls of a relay that does not answer."""
    insecure_registries: tuple[str, ...] = ()
    """Hosts of registries that are asked over plain HTTP."""
    registry_ca: str = ""
    """File with more certificate authorities that registries may have, in PEM; "": none."""
    issuer_ca: str = ""
    """File with more certificate authorities that token issuers may have, in PEM; "": none."""
    audit_interval: float = 60.0
    """How often the caches of servers and pods are compared with the API server; all every fifth time."""
    network: NetworkSettings = NetworkSettings()


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
        relay_resources=_resources(environment, "MCP_OPERATOR_RELAY_RESOURCES"),
        image_pull_policy=policy,
        namespaces=tuple(environment.get("MCP_OPERATOR_NAMESPACES", "").replace(",", " ").split()),
        insecure_registries=tuple(
            environment.get("MCP_OPERATOR_INSECURE_REGISTRIES", "").replace(",", " ").split()
        ),
        registry_ca=environment.get("MCP_OPERATOR_REGISTRY_CA", ""),
        issuer_ca=environment.get("MCP_OPERATOR_ISSUER_CA", ""),
        log_level=level,
        health_port=_port(environment, "MCP_OPERATOR_HEALTH_PORT", 8080),
        metrics_port=_port(environment, "MCP_OPERATOR_METRICS_PORT", 8081),
        network=_network(environment),
    )


def _resources(environment: Mapping[str, str], name: str) -> dict[str, dict[str, str]]:
    """Requests and limits as the JSON of a container's `resources`; quantities as text."""
    text = environment.get(name) or "{}"
    try:
        found = json.loads(text)
        made = {
            part: {key: str(value) for key, value in (found.get(part) or {}).items()}
            for part in ("requests", "limits")
        }
        for value in (*made["requests"].values(), *made["limits"].values()):
            quantity.parse(value)
    except (ValueError, AttributeError, RecursionError) as error:
        example = '{"limits": {"memory": "256Mi"}}'
        raise SettingsError(f"{name}={text!r} is no set of resources such as {example}: {error}") from error
    return {part: values for part, values in made.items() if values}


def _network(environment: Mapping[str, str]) -> NetworkSettings:
    name = "MCP_OPERATOR_NETWORK"
    try:
        told = json.loads(environment.get(name) or "{}")
        return NetworkSettings(
            namespace=environment.get("MCP_OPERATOR_NAMESPACE", ""),
            pod_labels=dict(told.get("podLabels") or {}),
            dns=tuple(told["dns"]) if "dns" in told else CLUSTER_DNS,
            not_internet=tuple(str(ipaddress.ip_network(cidr)) for cidr in told.get("notInternet") or ()),
            admin_from=tuple(told.get("adminFrom") or ()),
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise SettingsError(f"{name} is not the JSON object that the chart writes: {error}") from error


def _port(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "")
    if not text:
        return default
    if not text.isdecimal() or not 0 <= int(text) <= 65_535:
        raise SettingsError(f"{name}={text!r} is not a port (0 to 65535)")
    return int(text)
