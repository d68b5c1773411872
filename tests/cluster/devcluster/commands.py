"""Command lines of the local node's programs. Pure."""

from collections.abc import Mapping
from pathlib import Path

from devcluster import configs, network
from devcluster.layout import Layout

Argv = list[str | Path]
ETCD = f"https://{network.NODE_IP}:2379"
ETCD_PEER = "http://127.0.0.1:23801"


def _flags(values: Mapping[str, object]) -> list[str | Path]:
    return [f"--{name}={value}" for name, value in values.items()]


def etcd(tool: Path, where: Layout) -> Argv:
    """Nothing in it outlives the node, so it need not wait for the disk."""
    return [
        tool,
        *_flags(
            {
                "data-dir": where.state / "etcd",
                "listen-client-urls": ETCD,
                "advertise-client-urls": ETCD,
                "listen-peer-urls": ETCD_PEER,
                "initial-advertise-peer-urls": ETCD_PEER,
                "initial-cluster": f"default={ETCD_PEER}",
                "cert-file": where.pki / "apiserver.crt",
                "key-file": where.pki / "apiserver.key",
                "trusted-ca-file": where.pki / "ca.crt",
                "client-cert-auth": "true",
                "unsafe-no-fsync": "true",
                "log-level": "warn",
            }
        ),
    ]


def apiserver(tool: Path, where: Layout) -> Argv:
    """Listens on the node's own address only, which no other machine routes to."""
    pki = where.pki
    return [
        tool,
        *_flags(
            {
                "etcd-servers": ETCD,
                "etcd-cafile": pki / "ca.crt",
                "etcd-certfile": pki / "apiserver.crt",
                "etcd-keyfile": pki / "apiserver.key",
                "bind-address": network.NODE_IP,
                "advertise-address": network.NODE_IP,
                "service-cluster-ip-range": network.SERVICE_CIDR,
                "authorization-mode": "Node,RBAC",
                "enable-admission-plugins": "NodeRestriction",
                "allow-privileged": "true",
                "client-ca-file": pki / "ca.crt",
                "tls-cert-file": pki / "apiserver.crt",
                "tls-private-key-file": pki / "apiserver.key",
                "kubelet-preferred-address-types": "InternalIP",
                "kubelet-client-certificate": pki / "admin.crt",
                "kubelet-client-key": pki / "admin.key",
                "audit-policy-file": where.etc / "audit-policy.yaml",
                "audit-log-path": where.audit_log,
                "service-account-issuer": f"https://kubernetes.default.svc.{configs.DOMAIN}",
                "service-account-key-file": pki / "service-account.pub",
                "service-account-signing-key-file": pki / "service-account.key",
            }
        ),
    ]


def controller_manager(tool: Path, where: Layout) -> Argv:
    """Leader election off: there is one."""
    pki = where.pki
    return [
        tool,
        *_flags(
            {
                "kubeconfig": where.etc / "controller-manager.kubeconfig",
                "bind-address": "127.0.0.1",
                "leader-elect": "false",
                "allocate-node-cidrs": "true",
                "cluster-cidr": network.POD_CIDR,
                "node-cidr-mask-size": "16",
                "service-cluster-ip-range": network.SERVICE_CIDR,
                "cluster-signing-cert-file": pki / "ca.crt",
                "cluster-signing-key-file": pki / "ca.key",
                "root-ca-file": pki / "ca.crt",
                "service-account-private-key-file": pki / "service-account.key",
                "use-service-account-credentials": "true",
            }
        ),
    ]


def scheduler(tool: Path, where: Layout) -> Argv:
    """Defaults, but for one instance."""
    kubeconfig = where.etc / "scheduler.kubeconfig"
    return [tool, *_flags({"kubeconfig": kubeconfig, "bind-address": "127.0.0.1", "leader-elect": "false"})]


def kubelet(tool: Path, where: Layout) -> Argv:
    """The rest stands in its configuration file."""
    return [
        tool,
        *_flags(
            {
                "config": where.etc / "kubelet.yaml",
                "kubeconfig": where.etc / "kubelet.kubeconfig",
                "root-dir": where.kubelet,
                "cert-dir": where.kubelet / "pki",
                "hostname-override": configs.NODE_NAME,
                "node-ip": network.NODE_IP,
            }
        ),
    ]


def kube_proxy(tool: Path, where: Layout) -> Argv:
    """The rest stands in its configuration file."""
    return [tool, f"--config={where.etc / 'kube-proxy.yaml'}"]


def kube_router(tool: Path, where: Layout) -> Argv:
    """The NetworkPolicy part alone."""
    return [
        tool,
        *_flags(
            {
                "kubeconfig": where.etc / "kube-router.kubeconfig",
                "run-firewall": "true",
                "run-router": "false",
                "run-service-proxy": "false",
                "run-loadbalancer": "false",
                "service-cluster-ip-range": network.SERVICE_CIDR,
                "hostname-override": configs.NODE_NAME,
                "health-port": "0",
                "metrics-port": "0",
            }
        ),
    ]
