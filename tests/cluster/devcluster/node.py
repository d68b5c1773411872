"""The local node: all of Kubernetes as plain processes on this machine."""

import contextlib
import json
import os
import shutil
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path

from devcluster import (
    certificates,
    commands,
    configs,
    debian,
    gotools,
    images,
    leftovers,
    network,
    processes,
    say,
    shell,
    smallimages,
)
from devcluster.certificates import Identity
from devcluster.layout import Layout

# started in this order, stopped in the opposite one
PROGRAMS = (
    "containerd",
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "kube-router",
)
KUBECONFIGS = {
    "admin": Identity("admin", "admin", "system:masters"),
    "controller-manager": Identity("controller-manager", "system:kube-controller-manager"),
    "scheduler": Identity("scheduler", "system:kube-scheduler"),
    "kubelet": Identity("kubelet", f"system:node:{configs.NODE_NAME}", "system:nodes"),
    "kube-proxy": Identity("kube-proxy", "system:kube-proxy"),
    "kube-router": Identity("kube-router", "kube-router", "system:masters"),
}
API_SERVER_NAMES = (
    f"IP:{network.NODE_IP}",
    f"IP:{network.API_SERVICE_IP}",
    "IP:127.0.0.1",
    "DNS:localhost",
    "DNS:kubernetes.default.svc",
    f"DNS:kubernetes.default.svc.{configs.DOMAIN}",
)


class Node:
    """One local node; everything it knows lies in files, so any process can take it up."""

    def __init__(self, where: Layout) -> None:
        self.where = where
        self.processes = processes.Supervisor(where.pids, where.state / "logs")

    def become_able(self) -> None:
        """Containers and networks need root."""
        debian.become_root()
        for folder in (self.where.cache, self.where.tools, self.where.logs):
            folder.mkdir(parents=True, exist_ok=True)
            debian.give_to_caller(folder)

    def up(self) -> None:
        """Bring the node up. If it is healthy, do nothing; if not, clear what a crash left and start anew."""
        with self._lock():
            self._up()

    def _up(self) -> None:
        if self.is_healthy():
            say.line("==> the local node is up already")
            return
        debian.ensure()
        network.check_free(shell.run(["ip", "-4", "route"]))
        if not self._has_leftovers():
            network.check_alone(shell.run(["nft", "list", "tables"]), shell.run(["iptables-save"]))
        tools = {
            name: gotools.tool(name, self.where)
            for name in (*PROGRAMS[1:], "kubectl", "pod-sweep", "coredns")
        }
        smallimages.build(self.where, tools["coredns"])
        self._down()
        with say.step("rendering configuration and keys"):
            self._configure()
        with say.step("starting etcd, API server and containerd"):
            self._start_core(tools)
        with say.step("loading the pause and DNS images"):
            smallimages.load(self.where)
        with say.step("starting controllers, scheduler, kubelet, kube-proxy"):
            self._start_rest(tools)
        with say.step("waiting for the node and its DNS"):
            self._wait_ready(tools)

    def down(self) -> None:
        """Stop the node and remove all it left, also after a crash. Images stay in the cache."""
        with self._lock():
            self._down()

    def _lock(self) -> contextlib.AbstractContextManager[None]:
        return shell.lock(self.where.cache / ".node.lock")

    def _down(self) -> None:
        if not self._has_leftovers():
            return
        with say.step("stopping the local node and clearing what it left"):
            for name in reversed(PROGRAMS[1:]):
                self.processes.stop(name, grace=3)
            if not self.processes.alive("containerd"):
                self.processes.stop("containerd")
                leftovers.kill(leftovers.stray_pids(self.where, PROGRAMS))
            self._sweep_pods()
            self.processes.stop("containerd")
            leftovers.kill(leftovers.stray_pids(self.where, PROGRAMS))
            self._clear()

    def is_healthy(self) -> bool:
        """Whether every program runs, the API server answers and the node is Ready."""
        return all(map(self.processes.alive, PROGRAMS)) and self.api_is_ready() and self._node_is_ready()

    def status(self) -> list[str]:
        """A line per program, then the node's health."""
        lines = [f"{name:24} {'runs' if self.processes.alive(name) else 'stopped'}" for name in PROGRAMS]
        return [*lines, f"{'cluster':24} {'healthy' if self.is_healthy() else 'not healthy'}"]

    def load(self, references: Mapping[str, str]) -> None:
        """Copy images from buildah's store that containerd does not have; a second name for each."""
        present = shell.run(smallimages.ctr(self.where, "images", "list", "--quiet")).split()
        for reference, alias in references.items():
            if reference not in present:
                with say.step(f"loading {reference}"):
                    smallimages.transfer(self.where, reference)
            shell.run(smallimages.ctr(self.where, "images", "tag", "--force", reference, alias))

    def forget(self, references: Iterable[str]) -> None:
        """Drop the names of images that `references` replaced."""
        present = shell.run(smallimages.ctr(self.where, "images", "list", "--quiet")).split()
        stale = images.replaced(present, references)
        if stale:
            shell.run(smallimages.ctr(self.where, "images", "remove", *stale))

    def kubectl_words(self, *words: str) -> list[str]:
        """Argument list of kubectl as administrator."""
        return [str(gotools.tool("kubectl", self.where)), f"--kubeconfig={self.where.kubeconfig}", *words]

    def kubectl(self, *words: str, text_in: str | None = None) -> str:
        """Run kubectl as administrator."""
        return shell.run(self.kubectl_words(*words), text_in=text_in)

    def _configure(self) -> None:
        where = self.where
        host = observe_host()
        (where.etc / "cni").mkdir(parents=True, exist_ok=True)
        files = {
            "containerd.toml": configs.containerd(where, host),
            "cni/10-devcluster.conflist": configs.cni(where, host),
            "audit-policy.yaml": configs.audit_policy(),
            "kubelet.yaml": configs.kubelet(where, host),
            "kube-proxy.yaml": configs.kube_proxy(where),
        }
        for name, text in files.items():
            (where.etc / name).write_text(text, encoding="utf-8")
        certificates.make_authority(where.pki)
        certificates.issue(where.pki, Identity("apiserver", "kube-apiserver", names=API_SERVER_NAMES))
        for name, identity in KUBECONFIGS.items():
            certificates.issue(where.pki, identity)
            certificates.write_kubeconfig(
                where.etc / f"{name}.kubeconfig", configs.API_SERVER, where.pki, name
            )
        shutil.copyfile(where.etc / "admin.kubeconfig", where.kubeconfig)
        where.kubeconfig.chmod(0o600)
        debian.give_to_caller(where.kubeconfig)

    def _start_core(self, tools: dict[str, Path]) -> None:
        where = self.where
        network.set_up(where.forwarding)
        leftovers.make_cgroups()
        self.processes.start("etcd", commands.etcd(tools["etcd"], where))
        self.processes.start("kube-apiserver", commands.apiserver(tools["kube-apiserver"], where))
        self._start_containerd()
        self._wait("kube-apiserver", "the API server answers", self.api_is_ready, 60)

    def _start_containerd(self) -> None:
        self.processes.start("containerd", ["containerd", "--config", self.where.etc / "containerd.toml"])
        self._wait(
            "containerd",
            "containerd answers",
            lambda: shell.succeeds(smallimages.ctr(self.where, "version")),
            30,
        )

    def _start_rest(self, tools: dict[str, Path]) -> None:
        where = self.where
        argvs = {
            "kube-controller-manager": commands.controller_manager,
            "kube-scheduler": commands.scheduler,
            "kubelet": commands.kubelet,
            "kube-proxy": commands.kube_proxy,
        }
        for name, argv in argvs.items():
            self.processes.start(name, argv(tools[name], where))
        manifest = Path(__file__).with_name("coredns.yaml").read_text(encoding="utf-8")
        self.kubectl("apply", "--server-side", "--filename=-", text_in=manifest)

    def _wait_ready(self, tools: dict[str, Path]) -> None:
        self._wait("kubelet", "the node is Ready", self._node_is_ready, 90)
        # it looks its node up when it starts, and ends if there is none yet
        self.processes.start("kube-router", commands.kube_router(tools["kube-router"], self.where))
        self.kubectl("--namespace=kube-system", "rollout", "status", "deployment/coredns", "--timeout=90s")
        for name in PROGRAMS:
            self.processes.check(name)

    def _wait(self, name: str, what: str, ready: shell.Check, seconds: float) -> None:
        def look() -> bool:
            self.processes.check(name)
            return ready()

        try:
            shell.wait_until(what, look, seconds)
        except say.ClusterError as error:
            raise say.ClusterError(f"{error}\n{self.processes.tail(name)}") from None

    def api_is_ready(self) -> bool:
        authority = self.where.pki / "ca.crt"
        if not authority.exists():
            return False
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),  # a proxy of the host does not know the node
            urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(authority))),
        )
        try:
            with opener.open(f"{configs.API_SERVER}/readyz", timeout=2) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def _node_is_ready(self) -> bool:
        try:
            node = json.loads(
                self.kubectl("get", "node", configs.NODE_NAME, "--output=json", "--request-timeout=5s")
            )
        except say.ClusterError:
            return False
        return any(
            item["type"] == "Ready" and item["status"] == "True" for item in node["status"]["conditions"]
        )

    def _has_leftovers(self) -> bool:
        where = self.where
        return any((where.state.exists(), where.run.exists(), network.exists(), leftovers.own_cgroups()))

    def _sweep_pods(self) -> None:
        """Have the container runtime take all pods down, starting it again if it died. What it cannot do is
        done by force afterwards; if it cannot even start, its store is thrown away."""
        config = self.where.etc / "containerd.toml"
        if not config.exists() or not shutil.which("containerd"):
            return
        try:
            if not self.processes.alive("containerd"):
                leftovers.kill({*leftovers.shim_pids(self.where), *leftovers.pod_pids()})
                self._start_containerd()
            shell.run([gotools.tool("pod-sweep", self.where), f"unix://{self.where.containerd_socket}"])
        except say.ClusterError as error:
            say.line(f"\n    the container store is unusable and is made anew: {error}")
            self.processes.stop("containerd")
            leftovers.unmount([self.where.containerd])
            shutil.rmtree(self.where.containerd, ignore_errors=True)

    def _clear(self) -> None:
        where = self.where
        leftovers.kill({*leftovers.shim_pids(where), *leftovers.pod_pids()})
        leftovers.unmount([where.run, where.state, where.containerd])
        leftovers.remove_cgroups()
        leftovers.remove_container_logs(where)
        network.tear_down(where.forwarding)
        for folder in (where.state, where.run):
            if folder.exists():
                shutil.rmtree(folder)


def observe_host() -> configs.Host:
    """The facts about this machine that configuration depends on."""
    systemd = Path(
        "/run/systemd/resolve/resolv.conf"
    )  # the real name servers where a local stub stands before them
    return configs.Host(
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        mtu=network.host_mtu(),
        resolv_conf=systemd if systemd.exists() else Path("/etc/resolv.conf"),
        cni_plugins=debian.CNI_PLUGINS,
    )
