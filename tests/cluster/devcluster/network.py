"""Addresses of the local node, and what it changes in the host's network."""

import functools
from collections.abc import Iterable
from pathlib import Path

from devcluster import say, shell

BRIDGE = "mcpdev0"  # carries the node's address: it must be on an interface that lives as long as the node
NODE_IP = "10.200.0.1"
# Where an end-to-end test runs a registry, spoken to without TLS.
REGISTRY = f"{NODE_IP}:5055"
POD_CIDR = "10.201.0.0/16"
SERVICE_CIDR = "10.202.0.0/16"
API_SERVICE_IP = "10.202.0.1"
DNS_SERVICE_IP = "10.202.0.10"
NAT_TABLE = "mcp_devcluster"
FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")

# Pods reach the outside under the host's address. One rule for all pods: a chain per pod, as the CNI
# plugin would make, costs every pod start four calls of iptables.
NAT_RULES = f"""
table ip {NAT_TABLE} {{
    chain postrouting {{
        type nat hook postrouting priority srcnat; policy accept;
        ip saddr {POD_CIDR} ip daddr != {{ {POD_CIDR}, {SERVICE_CIDR}, {NODE_IP} }} masquerade
    }}
}}
"""
# Each pod has a route of its own. Without this one, packets to a pod that is gone would follow the default
# route and leave this machine, tokens and all.
GONE_PODS = ("unreachable", POD_CIDR)
NFT_TABLES = (("ip", NAT_TABLE), ("ip", "kube-proxy"), ("ip6", "kube-proxy"))
NODE_CHAINS = ("KUBE-",)  # of kube-proxy, kubelet and kube-router


def default_mtu(routes: str, sysfs: Path = Path("/sys/class/net")) -> int:
    """MTU in bytes of the interface with the default route; 1500 without one. `routes` is /proc/net/route."""
    for line in routes.splitlines()[1:]:
        interface, destination = line.split()[:2]
        if destination == "00000000":
            return int((sysfs / interface / "mtu").read_text(encoding="utf-8"))
    return 1500


def host_mtu() -> int:
    """MTU in bytes that pods should use here."""
    return default_mtu(Path("/proc/net/route").read_text(encoding="utf-8"))


def set_up(memory: Path) -> None:
    """Give the host the node's address, forwarding and the one NAT rule. Safe to repeat.

    `memory` is a file that remembers until `tear_down` whether the host forwarded before.
    """
    tear_down_links()
    if not memory.exists():
        memory.write_text(FORWARDING.read_text(encoding="utf-8"), encoding="utf-8")
    shell.run(["ip", "link", "add", BRIDGE, "type", "bridge"])
    shell.run(["ip", "address", "add", f"{NODE_IP}/32", "dev", BRIDGE])
    shell.run(["ip", "link", "set", BRIDGE, "up"])
    shell.run(["ip", "route", "replace", *GONE_PODS])
    FORWARDING.write_text("1", encoding="utf-8")
    shell.run(["nft", "-f", "-"], text_in=NAT_RULES)


def tear_down(memory: Path) -> None:
    """Remove all that the node has put into the host's network; forward as before `set_up`."""
    tear_down_links()
    tear_down_policies()
    if memory.exists():
        FORWARDING.write_text(memory.read_text(encoding="utf-8"), encoding="utf-8")


def exists() -> bool:
    """Whether this host has the node's address."""
    return Path("/sys/class/net", BRIDGE).exists()


def tear_down_links() -> None:
    """Remove the node's address and the NAT rule, if there."""
    if exists():
        shell.run(["ip", "link", "delete", BRIDGE])
    if GONE_PODS[1] in shell.run(["ip", "route", "show", "type", GONE_PODS[0]]).split():
        shell.run(["ip", "route", "delete", *GONE_PODS])
    for family, table in NFT_TABLES:
        if shell.succeeds(["nft", "list", "table", family, table]):
            shell.run(["nft", "delete", "table", family, table])


def without_chains(rules: str, prefixes: Iterable[str] = NODE_CHAINS) -> str:
    """An iptables-save text without the chains of these prefixes and without every rule that names one."""
    marks = tuple(prefixes)

    def is_theirs(line: str) -> bool:
        words = line.split()
        return bool(words) and any(word.lstrip(":").startswith(marks) for word in words)

    return "".join(f"{line}\n" for line in rules.splitlines() if not is_theirs(line))


def tear_down_policies() -> None:
    """Remove the packet filter rules and address sets of NetworkPolicies."""
    for save, restore in (("iptables-save", "iptables-restore"), ("ip6tables-save", "ip6tables-restore")):
        rules = shell.run([save])
        kept = without_chains(rules)
        if kept != rules.rstrip("\n") + "\n" and rules:
            shell.run([restore], text_in=kept)
    for name in shell.run(["ipset", "list", "-n"]).split():
        if name.startswith(("KUBE-", "kube-router-", "inet6:KUBE-", "inet6:kube-router-")):
            # The kernel lets go of a set a moment after the last rule that names it is gone.
            destroyed = functools.partial(shell.succeeds, ["ipset", "destroy", name])
            shell.wait_until(f"address set {name} can be removed", destroyed, 10)


def check_free(routes: str) -> None:
    """Refuse to start where somebody else's network uses these ranges. `routes` is `ip -4 route` output.

    Raises:
        ClusterError: a route that is not the node's own covers them.
    """
    ours = ("10.200.", "10.201.", "10.202.")
    for line in routes.splitlines():
        if line.startswith(ours) and BRIDGE not in line and " veth" not in line:
            raise say.ClusterError(
                f"the local node needs {', '.join(ours)}* for itself, but this host routes: {line}"
            )


def check_alone(tables: str, rules: str) -> None:
    """Refuse to start beside another Kubernetes: stopping the node clears such rules, whoever made them.

    `tables` is `nft list tables` output (`table ip NAME` lines), `rules` that of iptables-save.

    Raises:
        ClusterError: the packet filter holds rules of one.
    """
    names = {f"table {family} {name}" for family, name in NFT_TABLES[1:]}
    found = sorted(names.intersection(tables.splitlines()))
    if without_chains(rules).split() != rules.split():
        found.append("iptables chains KUBE-*")
    if found:
        raise say.ClusterError(
            "this machine runs another Kubernetes, or one left its rules behind "
            f"({', '.join(found)}): the local node cannot share the packet filter with it. "
            "Stop it and remove these, or use another machine"
        )
