"""The NetworkPolicy of an MCPServer, judged by what it lets through."""

import ipaddress
from dataclasses import replace
from typing import Any

import pytest

from mcp_operator.core.api import MCPServerSpec
from mcp_operator.manifests import network
from mcp_operator.manifests.identity import Owner
from mcp_operator.settings import CLUSTER_DNS, NetworkSettings, Settings, from_environment

OWNER = Owner("time", "default", "uid-1")
US = NetworkSettings(namespace="mcp-system", pod_labels={"app": "operator"})
SETTINGS = Settings(network=US)
OPERATOR = {
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "mcp-system"}},
    "podSelector": {"matchLabels": {"app": "operator"}},
}
CLIENTS = [{"protocol": "TCP", "port": 8080}]
ADMIN = [{"protocol": "TCP", "port": 8081}]
BOTH = [*ADMIN, *CLIENTS]
Json = dict[str, Any]


def policy(settings: Settings = SETTINGS, **fields: Any) -> Json:
    spec = MCPServerSpec.parse({"command": ["x"], "network": fields})
    found: Json = network.build(OWNER, spec, settings)["spec"]
    return found


def lets_out(rules: list[Json], address: str) -> bool:
    """Whether a connection to this address, on a port that no rule names, passes."""
    goal = ipaddress.ip_address(address)
    blocks = [peer["ipBlock"] for rule in rules if "ports" not in rule for peer in rule["to"]]
    return any(
        goal in ipaddress.ip_network(block["cidr"])
        and not any(goal in ipaddress.ip_network(hole) for hole in block["except"])
        for block in blocks
    )


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.1.1.1", "192.0.1.1", "203.0.113.80", "172.32.0.1", "2606:4700::1111", "64:ff9b::808:808"],
)
def test_the_internet_is_what_has_a_public_address(address: str) -> None:
    assert lets_out(policy()["egress"], address)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.1", "10.1.2.3", "100.100.100.200", "127.0.0.1", "168.63.129.16", "169.254.169.254",
        "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.168.1.1", "198.18.0.1",
        "224.0.0.1", "255.255.255.255", "::1", "::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::a00:1",
        "64:ff9b:1::1", "2001::1", "2002:a00:1::1", "fd00:ec2::254", "fe80::1", "ff02::1",
    ],
)  # fmt: skip
def test_no_private_link_local_or_metadata_address_belongs_to_the_internet(address: str) -> None:
    assert not lets_out(policy()["egress"], address)


def test_public_ranges_of_the_cluster_are_left_out_where_the_operator_was_told() -> None:
    told = replace(US, not_internet=("203.0.113.0/24", "2001:db8:1::/48"))
    rules = policy(Settings(network=told))["egress"]
    assert not lets_out(rules, "203.0.113.80")
    assert not lets_out(rules, "64:ff9b::cb00:7150")
    assert not lets_out(rules, "2001:db8:1::1")
    assert lets_out(rules, "203.0.112.1")


def test_no_exception_lies_inside_another_or_outside_its_range() -> None:
    told = replace(US, not_internet=("10.1.0.0/16",))
    for block in [peer["ipBlock"] for peer in policy(Settings(network=told))["egress"][-1]["to"]]:
        holes = [ipaddress.ip_network(hole) for hole in block["except"]]
        assert all(ipaddress.ip_network(block["cidr"]).version == hole.version for hole in holes)
        assert not any(one is not other and one.overlaps(other) for one in holes for other in holes)


def test_the_internet_comes_with_the_clusters_dns_and_nothing_else_on_that_way() -> None:
    dns, _ = policy()["egress"]
    assert dns == CLUSTER_DNS[0]
    assert {port["port"] for port in dns["ports"]} == {53}
    assert len(policy(Settings(network=replace(US, dns=())))["egress"]) == 1


def test_the_other_classes_say_what_they_are_called() -> None:
    both = ["Ingress", "Egress"]
    nothing = policy(egress="None")
    assert "egress" not in nothing
    assert nothing["policyTypes"] == policy(egress="All")["policyTypes"] == both
    assert policy(egress="All")["egress"] == [{}]
    rules = [{"to": [{"ipBlock": {"cidr": "10.1.0.0/16"}}], "ports": [{"port": "db"}]}]
    assert policy(egress="Custom", egressRules=rules)["egress"] == rules


def test_clients_come_from_the_same_namespace_unless_told_otherwise() -> None:
    operator = {"from": [OPERATOR], "ports": BOTH}
    assert policy()["ingress"] == [{"from": [{"podSelector": {}}], "ports": CLIENTS}, operator]
    agents = [{"namespaceSelector": {"matchLabels": {"team": "agents"}}}]
    assert policy(ingressFrom=agents)["ingress"] == [{"from": agents, "ports": CLIENTS}, operator]
    assert policy(ingressFrom=[])["ingress"] == [operator]


def test_the_admin_port_is_the_operators_and_of_whom_the_chart_names() -> None:
    prometheus = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    rules = policy(Settings(network=replace(US, admin_from=(prometheus,))))["ingress"]
    assert [rule["from"] for rule in rules if ADMIN[0] in rule["ports"]] == [[OPERATOR], [prometheus]]


@pytest.mark.parametrize("told", [NetworkSettings(), replace(US, pod_labels={}), replace(US, namespace="")])
def test_an_operator_that_does_not_know_itself_can_still_ask_the_relays(told: NetworkSettings) -> None:
    rules = policy(Settings(network=told), ingressFrom=[])["ingress"]
    assert rules == [{"ports": ADMIN}]


def test_the_policy_chooses_the_servers_pods_by_the_operators_own_label() -> None:
    assert policy()["podSelector"] == {"matchLabels": {"mcp-session.dev/server": "time"}}


def test_the_chart_tells_the_operator_about_the_network() -> None:
    told = '{"podLabels": {"a": "b"}, "dns": [], "notInternet": ["1.2.3.0/24"], "adminFrom": [{"a": {}}]}'
    found = from_environment({"MCP_OPERATOR_NAMESPACE": "mcp", "MCP_OPERATOR_NETWORK": told}).network
    assert found == NetworkSettings("mcp", {"a": "b"}, (), ("1.2.3.0/24",), ({"a": {}},))
    assert from_environment({}).network == NetworkSettings()
