"""The cluster where a Docker engine answers: kind, as kind-config.yaml describes it."""

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from devcluster import gotools, images, say, shell
from devcluster.layout import NAME, REPOSITORY, Layout

NODE_CONTAINER = f"{NAME}-control-plane"


@dataclass(frozen=True)
class Kind:
    """A kind cluster with the project's name."""

    where: Layout

    def become_able(self) -> None:
        """Whoever can talk to the Docker engine can do all of this."""

    def up(self) -> None:
        """Create the cluster, or write the kubeconfig of the one that is there."""
        kubeconfig = f"--kubeconfig={self.where.kubeconfig}"
        self.where.cache.mkdir(parents=True, exist_ok=True)
        if self._exists():
            self._kind("export", "kubeconfig", f"--name={NAME}", kubeconfig)
            say.line("==> the kind cluster is up already")
            return
        config = f"--config={REPOSITORY / 'kind-config.yaml'}"
        with say.step("creating a kind cluster"):
            self._kind("create", "cluster", f"--name={NAME}", config, kubeconfig, "--wait=120s")

    def down(self) -> None:
        """Delete the cluster."""
        if self._exists():
            with say.step("deleting the kind cluster"):
                self._kind("delete", "cluster", f"--name={NAME}", f"--kubeconfig={self.where.kubeconfig}")

    def status(self) -> list[str]:
        """The nodes, or that there is no cluster."""
        if not self._exists():
            return ["no kind cluster"]
        return self.kubectl("get", "nodes", "--output=wide").splitlines()

    def load(self, references: Mapping[str, str]) -> None:
        """Copy images from the Docker engine that the node does not have."""
        present = self._ctr("images", "list", "--quiet").split()
        for reference, alias in references.items():
            if reference not in present:
                with say.step(f"loading {reference}"):
                    self._kind("load", "docker-image", f"--name={NAME}", reference)
            self._ctr("images", "tag", "--force", reference, alias)

    def forget(self, references: Iterable[str]) -> None:
        """Drop the names of images that `references` replaced."""
        stale = images.replaced(self._ctr("images", "list", "--quiet").split(), references)
        if stale:
            self._ctr("images", "remove", *stale)

    def kubectl_words(self, *words: str) -> list[str]:
        """Argument list of kubectl as administrator: the one on PATH, else the project's own."""
        program = shutil.which("kubectl") or gotools.tool("kubectl", self.where)
        return [str(program), f"--kubeconfig={self.where.kubeconfig}", *words]

    def kubectl(self, *words: str, text_in: str | None = None) -> str:
        """Run kubectl as administrator."""
        return shell.run(self.kubectl_words(*words), text_in=text_in)

    def _exists(self) -> bool:
        return NAME in self._kind("get", "clusters").split()

    def _kind(self, *words: str) -> str:
        program: str | Path = shutil.which("kind") or gotools.tool("kind", self.where)
        return shell.run([program, *words])

    def _ctr(self, *words: str) -> str:
        return shell.run(["docker", "exec", NODE_CONTAINER, "ctr", "--namespace=k8s.io", *words])
