"""Configuration of every program of the local node, as text. Pure: facts in, text out."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from devcluster import network
from devcluster.layout import Layout

NODE_NAME = "local"
DOMAIN = "cluster.local"
CGROUP = "/mcpserver-operator"  # every pod's processes are below, so they can be found after any crash
PAUSE_IMAGE = "localhost/devcluster-pause:1"
DNS_IMAGE = "localhost/devcluster-coredns:1"
MAX_PODS = 200
POD_PIDS = 512
OPERATOR_NAMESPACE = "mcp-system"
API_SERVER = f"https://{network.NODE_IP}:6443"
GIB = 1 << 30


@dataclass(frozen=True)
class Host:
    """What the configuration depends on of this machine; memory in bytes, mtu in bytes."""

    memory: int
    mtu: int
    resolv_conf: Path
    cni_plugins: Path


def reserved_memory(memory: int) -> int:
    """Bytes kept from pods for the node's programs and whoever works here: a quarter, at most 4 GiB."""
    return min(memory // 4, 4 * GIB)


def containerd(where: Layout, host: Host) -> str:
    """config.toml. TOML's basic strings and lists are JSON's, so json.dumps quotes them."""
    q = json.dumps
    cri = "io.containerd.grpc.v1.cri"
    return f"""\
version = 2
root = {q(str(where.containerd))}
state = {q(str(where.run / "containerd"))}
[grpc]
  address = {q(str(where.containerd_socket))}
[plugins.{q(cri)}]
  sandbox_image = {q(PAUSE_IMAGE)}
  # without CAP_SYS_RESOURCE runc may not lower the score and would die of it
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  # as newer releases do by themselves: port 53 for a DNS server that is not root
  enable_unprivileged_ports = true
  enable_unprivileged_icmp = true
  [plugins.{q(cri)}.containerd]
    default_runtime_name = "runc"
    [plugins.{q(cri)}.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins.{q(cri)}.cni]
    bin_dir = {q(str(host.cni_plugins))}
    conf_dir = {q(str(where.etc / "cni"))}
"""


def audit_policy() -> str:
    """What the API server notes down: what the operator's service account asked for."""
    noted = {
        "level": "Metadata",
        "userGroups": [f"system:serviceaccounts:{OPERATOR_NAMESPACE}"],
        "omitStages": ["RequestReceived", "ResponseStarted"],
    }
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [noted, {"level": "None"}]}
    return _yaml(policy)


def cni(where: Layout, host: Host) -> str:
    """One point-to-point link per pod: all traffic between pods is routed by the host, so that Services and
    NetworkPolicies hold without the kernel's bridge filter."""
    plugin = {
        "type": "ptp",
        "mtu": host.mtu,
        "ipMasq": False,
        "ipam": {
            "type": "host-local",
            "dataDir": str(where.state / "addresses"),
            "ranges": [[{"subnet": network.POD_CIDR}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    loopback = {"type": "loopback"}
    return json.dumps(
        {"cniVersion": "0.4.0", "name": "devcluster", "plugins": [plugin, loopback][:1]}, indent=2
    )


def kubelet(where: Layout, host: Host) -> str:
    """KubeletConfiguration."""
    reserved = reserved_memory(host.memory)
    return _yaml(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": network.NODE_IP,
            "authentication": {"x509": {"clientCAFile": str(where.pki / "ca.crt")}},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": CGROUP,
            "clusterDNS": [network.DNS_SERVICE_IP],
            "clusterDomain": DOMAIN,
            "containerRuntimeEndpoint": f"unix://{where.containerd_socket}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "makeIPTablesUtilChains": False,
            "maxPods": MAX_PODS,
            "oomScoreAdj": 0,
            "podLogsDir": str(where.state / "pod-logs"),
            # what a fork bomb may start in its own pod; Kubernetes has no such limit in a pod's spec
            "podPidsLimit": POD_PIDS,
            "resolvConf": str(host.resolv_conf),
            # a runaway pod must not take the machine with it; disks are the user's own business
            "systemReserved": {"memory": f"{reserved >> 20}Mi"},
            "evictionHard": {
                "memory.available": f"{max(reserved // 8, 256 << 20) >> 20}Mi",
                "nodefs.available": "0%",
                "nodefs.inodesFree": "0%",
                "imagefs.available": "0%",
                "imagefs.inodesFree": "0%",
            },
            # images are loaded by hand; the kubelet must not collect them
            "imageGCHighThresholdPercent": 100,
        }
    )


def kube_proxy(where: Layout) -> str:
    """KubeProxyConfiguration. The connection tracking limits stay as the host has them."""
    return _yaml(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            # Rules follow a change soon. With the default of 1 s (0 means that, too) a Service made in the
            # same second as its pod cannot be reached before that second is over, whatever an operator does.
            "nftables": {"minSyncPeriod": "50ms"},
            "clientConnection": {"kubeconfig": str(where.etc / "kube-proxy.kubeconfig")},
            "clusterCIDR": network.POD_CIDR,
            "hostnameOverride": NODE_NAME,
            "healthzBindAddress": "127.0.0.1:10256",
            "metricsBindAddress": "127.0.0.1:10249",
            "nodePortAddresses": [f"{network.NODE_IP}/32"],
            "conntrack": {
                "maxPerCore": 0,
                "min": 0,
                "tcpEstablishedTimeout": "0s",
                "tcpCloseWaitTimeout": "0s",
            },
            "oomScoreAdj": 0,
        }
    )


def _yaml(document: dict[str, Any]) -> str:
    return yaml.safe_dump(document, sort_keys=False)
