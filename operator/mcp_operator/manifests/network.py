"""The NetworkPolicy of an MCPServer: who reaches the relay's ports, and whom the pod reaches.

It stands beside the pod and not in it, so a change of the policy changes no pod.
"""

import ipaddress
from typing import Final

from mcp_operator.core import naming
from mcp_operator.core.api import EgressClass, MCPServerSpec
from mcp_operator.core.api.spec import Network
from mcp_operator.manifests import identity, names
from mcp_operator.manifests.identity import Json, Owner
from mcp_operator.settings import Settings
from mcp_relay_api import paths

# What is not the Internet (IANA's special-purpose registries): this host, private, shared, loopback,
# link-local with the metadata services, protocol assignments, benchmarks, multicast, reserved. The addresses
# that are kept for documentation lead nowhere and are no risk.
_NOT_PUBLIC_IPV4: Final = (
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "224.0.0.0/4",
    "240.0.0.0/4",
)
# Public by its number, but the host of the machine's own cloud (Azure's metadata and DNS).
_CLOUD_HOSTS: Final = ("168.63.129.16/32",)
# The same for IPv6. Tunnels whose far end another address hides (6to4, Teredo, local NAT64) count as private.
# What is for a mapped IPv4 address leaves as IPv4; a policy may not name those.
_NOT_PUBLIC_IPV6: Final = (
    "::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "2001::/32",
    "2002::/16",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
)
# The prefix behind which NAT64 reaches IPv4: an IPv6 cluster needs it for the IPv4 Internet.
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"


def build(owner: Owner, spec: MCPServerSpec, settings: Settings) -> Json:
    """The NetworkPolicy of an MCPServer. Empty lists are left out, as the API server does."""
    rules: Json = {
        "podSelector": {"matchLabels": {naming.SERVER: names.base(owner.name)}},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": _ingress(spec.network, settings),
    }
    egress = _egress(spec.network, settings)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": identity.metadata(owner, names.service(owner.name)),
        "spec": {**rules, "egress": egress} if egress else rules,
    }


def blocked(further: tuple[str, ...] = ()) -> tuple[list[str], list[str]]:
    """IPv4 and IPv6 ranges that the class Internet leaves out, with those that the operator was told."""
    told = [ipaddress.ip_network(cidr) for cidr in further]
    four = [ipaddress.IPv4Network(cidr) for cidr in (*_NOT_PUBLIC_IPV4, *_CLOUD_HOSTS)]
    four += [block for block in told if isinstance(block, ipaddress.IPv4Network)]
    six = [ipaddress.IPv6Network(cidr) for cidr in _NOT_PUBLIC_IPV6]
    six += [block for block in told if isinstance(block, ipaddress.IPv6Network)]
    six += [_behind_nat64(block) for block in four]
    # A range inside another one says nothing, and some network plugins refuse it.
    return (
        [str(block) for block in ipaddress.collapse_addresses(four)],
        [str(block) for block in ipaddress.collapse_addresses(six)],
    )


def _behind_nat64(block: ipaddress.IPv4Network) -> ipaddress.IPv6Network:
    address = int(_NAT64.network_address) + int(block.network_address)
    return ipaddress.IPv6Network((address, _NAT64.prefixlen + block.prefixlen))


def _ingress(network: Network, settings: Settings) -> list[Json]:
    peers = [{"podSelector": {}}] if network.ingress_from is None else list(network.ingress_from)
    rules = []
    if peers:
        rules.append({"from": peers, "ports": [_tcp(paths.MCP_PORT)]})
    rules.append(_operator(settings))
    if settings.network.admin_from:
        rules.append({"from": list(settings.network.admin_from), "ports": [_tcp(paths.ADMIN_PORT)]})
    return rules


def _operator(settings: Settings) -> Json:
    """The operator's own way in; one that was not told who it is can let in itself only by letting in all."""
    us = settings.network
    if not us.namespace or not us.pod_labels:
        return {"ports": [_tcp(paths.ADMIN_PORT)]}
    peer = {
        "namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: us.namespace}},
        "podSelector": {"matchLabels": dict(us.pod_labels)},
    }
    # It tries the clients' port too, before it says Ready.
    return {"from": [peer], "ports": [_tcp(paths.ADMIN_PORT), _tcp(paths.MCP_PORT)]}


def _egress(network: Network, settings: Settings) -> list[Json]:
    match network.egress:
        case EgressClass.NONE:
            return []
        case EgressClass.ALL:
            return [{}]
        case EgressClass.CUSTOM:
            return list(network.egress_rules or ())
    four, six = blocked(settings.network.not_internet)
    public = [
        {"ipBlock": {"cidr": "0.0.0.0/0", "except": four}},
        {"ipBlock": {"cidr": "::/0", "except": six}},
    ]
    return [*settings.network.dns, {"to": public}]


def _tcp(port: int) -> Json:
    return {"protocol": "TCP", "port": port}
