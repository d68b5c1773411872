"""The local node's configuration, as its programs will read it."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster import certificates, commands, configs, network, say
from devcluster.layout import Layout

WHERE = Layout(cache=Path("/home/u u/.cache/x"), run=Path("/run/x"))
HOST = configs.Host(
    memory=16 * configs.GIB, mtu=1400, resolv_conf=Path("/etc/resolv.conf"), cni_plugins=Path("/usr/lib/cni")
)


@pytest.mark.parametrize(("memory", "reserved"), [(2, 0.5), (16, 4), (256, 4)])
def test_a_quarter_of_memory_but_never_more_than_4_gib_is_kept_from_pods(
    memory: int, reserved: float
) -> None:
    assert configs.reserved_memory(memory * configs.GIB) == reserved * configs.GIB


def test_containerd_runs_our_pause_image_and_keeps_its_mounts_where_down_finds_them() -> None:
    config = tomllib.loads(configs.containerd(WHERE, HOST))
    cri = config["plugins"]["io.containerd.grpc.v1.cri"]
    assert config["root"] == "/home/u u/.cache/x/containerd"
    assert config["state"].startswith(f"{WHERE.run}/")
    assert cri["sandbox_image"] == configs.PAUSE_IMAGE
    assert cri["restrict_oom_score_adj"]
    assert cri["netns_mounts_under_state_dir"]
    assert cri["cni"] == {"bin_dir": "/usr/lib/cni", "conf_dir": str(WHERE.etc / "cni")}


def test_pods_get_the_mtu_of_the_host_and_an_address_of_the_pod_range() -> None:
    (plugin,) = json.loads(configs.cni(WHERE, HOST))["plugins"]
    assert plugin["mtu"] == 1400
    assert plugin["ipam"]["ranges"] == [[{"subnet": network.POD_CIDR}]]
    assert not plugin["ipMasq"]


def test_the_kubelet_evicts_before_the_machine_is_out_of_memory_and_never_for_disks() -> None:
    config = yaml.safe_load(configs.kubelet(WHERE, HOST))
    assert config["systemReserved"] == {"memory": "4096Mi"}
    thresholds = config["evictionHard"]
    assert thresholds.pop("memory.available") == "512Mi"
    assert set(thresholds.values()) == {"0%"}
    assert config["imageGCHighThresholdPercent"] == 100
    assert config["maxPods"] == configs.MAX_PODS


def test_the_audit_log_tells_what_the_operator_asked_for_and_nothing_else() -> None:
    noted, rest = yaml.safe_load(configs.audit_policy())["rules"]
    assert noted["userGroups"] == ["system:serviceaccounts:mcp-system"]
    assert noted["level"] == "Metadata"
    assert rest == {"level": "None"}
    words = [str(word) for word in commands.apiserver(Path("/bin/kube-apiserver"), WHERE)]
    assert f"--audit-log-path={WHERE.audit_log}" in words


def test_a_pod_may_start_only_so_many_processes() -> None:
    assert yaml.safe_load(configs.kubelet(WHERE, HOST))["podPidsLimit"] == configs.POD_PIDS


def test_nothing_listens_for_other_machines() -> None:
    kubelet = yaml.safe_load(configs.kubelet(WHERE, HOST))
    proxy = yaml.safe_load(configs.kube_proxy(WHERE))
    assert kubelet["address"] == network.NODE_IP
    assert proxy["nodePortAddresses"] == [f"{network.NODE_IP}/32"]
    assert all(proxy[key].startswith("127.0.0.1:") for key in ("healthzBindAddress", "metricsBindAddress"))
    binds = [word for argv in _all_commands() for word in argv if "bind-address=" in word]
    assert {bind.partition("=")[2] for bind in binds} == {network.NODE_IP, "127.0.0.1"}
    urls = [word for word in map(str, commands.etcd(Path("etcd"), WHERE)) if "listen-" in word]
    assert all("https://" in url or "127.0.0.1" in url for url in urls)


def _all_commands() -> list[list[str]]:
    makers = (commands.apiserver, commands.controller_manager, commands.scheduler)
    return [[str(word) for word in make(Path("program"), WHERE)] for make in makers]


def test_the_dns_service_has_the_address_that_pods_are_told() -> None:
    manifest = Path(configs.__file__).with_name("coredns.yaml").read_text(encoding="utf-8")
    documents: list[dict[str, Any]] = list(yaml.safe_load_all(manifest))
    service = next(item for item in documents if item["kind"] == "Service")
    deployment = next(item for item in documents if item["kind"] == "Deployment")
    config = yaml.safe_load(configs.kubelet(WHERE, HOST))
    assert config["clusterDNS"] == [service["spec"]["clusterIP"]] == [network.DNS_SERVICE_IP]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == configs.DNS_IMAGE


def test_a_kubeconfig_carries_its_keys() -> None:
    text = certificates.render_kubeconfig("https://10.200.0.1:6443", b"ca", b"cert", b"key")
    config = yaml.safe_load(text)
    assert config["clusters"][0]["cluster"]["certificate-authority-data"] == "Y2E="
    assert config["users"][0]["user"] == {"client-certificate-data": "Y2VydA==", "client-key-data": "a2V5"}
    assert config["current-context"] == config["contexts"][0]["name"]


def test_an_identity_names_its_group_before_itself() -> None:
    assert certificates.Identity("k", "system:node:local", "system:nodes").subject == (
        "/O=system:nodes/CN=system:node:local"
    )


def test_the_mtu_is_that_of_the_interface_with_the_default_route(tmp_path: Path) -> None:
    for name, mtu in (("eth0", 1400), ("eth1", 9000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mtu").write_text(f"{mtu}\n", encoding="utf-8")
    routes = "Iface\tDestination\tGateway\neth1\t000A0A0A\t0\neth0\t00000000\t010200C0\n"
    assert network.default_mtu(routes, tmp_path) == 1400
    assert network.default_mtu("Iface\tDestination\n", tmp_path) == 1500


@pytest.mark.parametrize(
    "routes", ["10.201.0.0/16 dev docker0 proto kernel", "10.200.0.0/16 via 192.0.2.9 dev eth0"]
)
def test_a_network_of_somebody_else_in_our_range_is_refused_by_name(routes: str) -> None:
    with pytest.raises(say.ClusterError, match=routes.split(maxsplit=1)[0]):
        network.check_free(f"default via 192.0.2.1 dev eth0\n{routes}\n")


def test_our_own_routes_and_others_elsewhere_are_no_hindrance() -> None:
    network.check_free(
        "default via 192.0.2.1 dev eth0\n10.201.0.7 dev veth12ab scope host\n10.20.0.0/16 dev eth0\n"
    )


def test_only_rules_of_kubernetes_are_taken_out_of_the_packet_filter() -> None:
    mine = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -s 10.0.0.0/8 -j DROP\nCOMMIT\n"
    theirs = (
        "*filter\n:INPUT ACCEPT [0:0]\n:KUBE-POD-FW-X - [0:0]\n-A INPUT -s 10.0.0.0/8 -j DROP\n"
        '-A INPUT -m comment --comment "kube" -j KUBE-POD-FW-X\n-A KUBE-POD-FW-X -j ACCEPT\nCOMMIT\n'
    )
    assert network.without_chains(theirs) == mine
    assert network.without_chains(mine) == mine


RULES = "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n"


@pytest.mark.parametrize(
    ("tables", "rules", "named"),
    [
        ("table ip filter\ntable ip kube-proxy\n", RULES, "table ip kube-proxy"),
        ("table ip filter\n", RULES.replace("COMMIT", ":KUBE-SERVICES - [0:0]\nCOMMIT"), "KUBE-"),
    ],
)
def test_the_rules_of_another_kubernetes_are_not_ours_to_clear(tables: str, rules: str, named: str) -> None:
    with pytest.raises(say.ClusterError, match=named):
        network.check_alone(tables, rules)


def test_a_packet_filter_without_kubernetes_is_no_hindrance() -> None:
    network.check_alone("table ip filter\ntable ip nat\n", RULES + "-A INPUT -j CNI-ADMIN\n")
