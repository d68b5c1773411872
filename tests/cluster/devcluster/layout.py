"""Where everything lies: repository, cache (kept), cluster state (thrown away by `down`), sockets."""

import os
from dataclasses import dataclass
from pathlib import Path

NAME = "mcpserver-operator"
REPOSITORY = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Layout:
    """Paths of one user's cluster. All absolute."""

    cache: Path
    run: Path

    @property
    def tools(self) -> Path:
        """Programs built from Go modules, named by version."""
        return self.cache / "bin"

    @property
    def state(self) -> Path:
        """What one life of the cluster writes."""
        return self.cache / "cluster"

    @property
    def pids(self) -> Path:
        """One record per process started."""
        return self.state / "pids"

    @property
    def logs(self) -> Path:
        """One log per process, and logs of builds."""
        return self.cache / "logs"

    @property
    def audit_log(self) -> Path:
        """What the operator asked the API server for, as long as the cluster lives."""
        return self.state / "logs/audit.log"

    @property
    def etc(self) -> Path:
        """Rendered configuration."""
        return self.state / "etc"

    @property
    def forwarding(self) -> Path:
        """What the host's IPv4 forwarding was before the node."""
        return self.state / "ip_forward"

    @property
    def pki(self) -> Path:
        """Keys and certificates."""
        return self.state / "pki"

    @property
    def kubelet(self) -> Path:
        """The kubelet's root: volumes of pods are mounted below."""
        return self.state / "kubelet"

    @property
    def containerd(self) -> Path:
        """Image store; survives `down` so that images are loaded once."""
        return self.cache / "containerd"

    @property
    def buildah(self) -> Path:
        """Image store of builds, with their cached layers."""
        return self.cache / "buildah"

    @property
    def base(self) -> Path:
        """The file system that becomes the local base image."""
        return self.cache / "base"

    @property
    def kubeconfig(self) -> Path:
        """For people and tests: cluster administrator."""
        return self.cache / "kubeconfig"

    @property
    def containerd_socket(self) -> Path:
        """Short, because a Unix socket's path is limited to 107 bytes."""
        return self.run / "containerd.sock"


def of_user() -> Layout:
    """The layout of whoever runs this: `$XDG_CACHE_HOME` or `~/.cache`."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Layout(cache=caches / NAME, run=Path("/run") / NAME)
