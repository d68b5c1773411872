"""Whom a hostile server can reach, and who can reach the relay. Each refusal has its control: the same try,
from a pod that may, succeeds, so the wall is the policy and not an address where nobody listens.
"""

import time
from collections.abc import AsyncIterator, Iterator

import pytest

from clusterkit import hostile, manifests, node, standins
from clusterkit import kube as k
from clusterkit.hostile import Inside, Neighbour
from clusterkit.servers import Server, Servers
from devcluster import network

CLIENTS, ADMIN = 8080, 8081
INTERNAL = {
    "the API server's Service": (network.API_SERVICE_IP, 443),
    "the API server": (network.NODE_IP, 6443),
    "etcd": (network.NODE_IP, 2379),
    "the kubelet": (network.NODE_IP, 10250),
    **{name: (address, standins.PORT) for name, address in standins.FORBIDDEN.items()},
}
PUBLIC = {"a public address": (standins.PUBLIC, standins.PORT)}
ALL = {"egress": "All"}


@pytest.fixture(autouse=True, scope="module")
def hosts() -> Iterator[None]:
    if node.is_kind():
        pytest.skip("the hosts that are attacked stand on the local node")
    with standins.stand_ins():
        yield


@pytest.fixture
async def stranger(kube: k.Kube, fresh_namespace: str) -> AsyncIterator[Neighbour]:
    pod = Neighbour(kube, fresh_namespace)
    await pod.start()
    yield pod
    await pod.stop()


async def ports_of(server: Server) -> hostile.Targets:
    address = (await server.pod())["status"]["podIP"]
    service = await server.only_child(k.SERVICES)
    return {
        "clients": (address, CLIENTS),
        "admin": (address, ADMIN),
        "service": (service["spec"]["clusterIP"], 80),
    }


async def opened(who: Inside | Neighbour, targets: hostile.Targets, wanted: list[str]) -> list[str]:
    """The targets that let `who` in, once these are the wanted ones: the node follows a change of policies
    within seconds. After ten of them whatever is found then.
    """
    deadline = time.monotonic() + 10
    while True:
        found = await who.knock(targets)
        reached = [name for name, result in found.items() if result == "open"]
        if reached == wanted or time.monotonic() > deadline:
            return reached


async def test_a_server_reaches_public_addresses_and_no_other(servers: Servers) -> None:
    confined, free = await servers.ready("confined"), await servers.ready("free", network=ALL)
    everything = {**INTERNAL, **PUBLIC, **{f"free: {k}": v for k, v in (await ports_of(free)).items()}}
    assert await opened(Inside(free), everything, list(everything)) == list(everything)
    assert await opened(Inside(confined), everything, list(PUBLIC)) == list(PUBLIC)
    assert await Inside(confined).resolve("kubernetes.default.svc") == network.API_SERVICE_IP


async def test_a_server_without_egress_reaches_nobody_and_no_name(servers: Servers, victim: Server) -> None:
    hermit = await servers.ready("hermit", network={"egress": "None"})
    targets = {**INTERNAL, **PUBLIC, **await ports_of(victim), "itself": ("127.0.0.1", CLIENTS)}
    assert await opened(Inside(hermit), targets, ["itself"]) == ["itself"]
    assert await Inside(hermit).resolve("kubernetes.default.svc") == "gaierror"


async def test_with_rules_of_ones_own_a_server_reaches_just_these_and_no_new_pod_is_needed(
    servers: Servers,
) -> None:
    server = await servers.ready("custom", network={"egress": "None"})
    before = await server.pod()
    goal = standins.FORBIDDEN["a private address"]
    rule = {
        "to": [{"ipBlock": {"cidr": f"{goal}/32"}}],
        "ports": [{"protocol": "TCP", "port": standins.PORT}],
    }
    await server.patch(network={"egress": "Custom", "egressRules": [rule]})
    await server.ready()
    named = ["a private address"]
    assert await opened(Inside(server), {**INTERNAL, **PUBLIC}, named) == named
    assert (await server.pod())["metadata"]["uid"] == before["metadata"]["uid"]


async def test_only_pods_of_the_namespace_reach_the_clients_port_and_none_the_admin_port(
    victim: Server, stranger: Neighbour, kube: k.Kube
) -> None:
    friend = Neighbour(kube, victim.namespace)
    await friend.start()
    targets = await ports_of(victim)
    allowed = ["clients", "service"]
    assert await opened(friend, targets, allowed) == allowed
    await friend.stop()
    assert await opened(stranger, targets, []) == []


async def test_a_hostile_server_reaches_no_port_of_another_servers_relay(
    servers: Servers, victim: Server
) -> None:
    attacker = await servers.ready("attacker")
    assert await opened(Inside(attacker), await ports_of(victim), []) == []


async def test_who_else_may_call_is_said_in_the_resource(servers: Servers, stranger: Neighbour) -> None:
    server = await servers.ready("shared")
    targets = await ports_of(server)
    assert await opened(stranger, targets, []) == []
    theirs = {"kubernetes.io/metadata.name": stranger.namespace}
    await server.patch(network={"ingressFrom": [{"namespaceSelector": {"matchLabels": theirs}}]})
    assert await opened(stranger, targets, ["clients", "service"]) == ["clients", "service"]


async def test_a_policy_that_somebody_changes_is_put_right(servers: Servers, stranger: Neighbour) -> None:
    server = await servers.ready("guarded")
    (policy,) = await server.children(k.NETWORKPOLICIES)
    name = policy["metadata"]["name"]
    await server.kube.merge(k.NETWORKPOLICIES, server.namespace, name, {"spec": {"ingress": [{}]}})

    def is_back(found: k.Json | None) -> bool:
        return found is not None and found["spec"] == policy["spec"]

    await server.kube.until(k.NETWORKPOLICIES, server.namespace, name, is_back, within=5)
    assert await opened(stranger, await ports_of(server), []) == []


async def test_a_rule_that_makes_no_sense_starts_no_pod_and_says_so(servers: Servers) -> None:
    rule = {"to": [{"ipBlock": {"cidr": "10.0.0.0/33"}}]}
    server = await servers.apply("nonsense", network={"egress": "Custom", "egressRules": [rule]})
    found = await server.until(lambda item: bool(k.summary(item).count("AdmissionRefused")))
    assert "NetworkPolicy" in found["status"]["error"]["message"]
    assert await server.children(k.PODS) == []


async def test_rules_without_the_class_custom_are_refused(servers: Servers) -> None:
    wrong: list[k.Json] = [
        {"egress": "Custom"},
        {"egressRules": []},
        {"egress": "All", "egressRules": []},
    ]
    for spec in wrong:
        with pytest.raises(k.ApiError, match="egressRules belongs to egress Custom"):
            await servers.apply("contradiction", manifests.RAW, network=spec)
