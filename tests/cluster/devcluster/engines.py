"""The programs that build images: docker where its engine answers, else buildah. Same Dockerfiles."""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from devcluster import baseimage, debian, shell, smallimages
from devcluster.layout import REPOSITORY, Layout


class Engine(Protocol):
    """What building needs of either."""

    def prepare(self) -> Mapping[str, str]:
        """Make the engine usable; build arguments that all images get."""

    def fingerprint(self, image: str) -> str:
        """The id of an image, "" if it is not there."""

    def build(self, dockerfile: Path, tag: str, arguments: Mapping[str, str], log: Path) -> None:
        """Build with the repository as context."""

    def tag(self, image: str, alias: str) -> None:
        """Give an image a second name."""

    def tags(self, repository: str) -> list[str]:
        """The tags that exist of a repository."""

    def remove(self, image: str) -> None:
        """Drop a name."""

    def push(self, image: str, target: str) -> str:
        """Give an image to a registry under another name; the digest that it has there."""

    def size(self, image: str) -> str:
        """Size of an image with all layers, for people: `104 MB`."""


def docker_answers() -> bool:
    """Whether a Docker engine is there to be used."""
    return shell.succeeds(["docker", "info"])


def _arguments(arguments: Mapping[str, str]) -> list[str]:
    return [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]


def _base_override() -> dict[str, str]:
    chosen = os.environ.get("BASE_IMAGE")
    return {"BASE_IMAGE": chosen} if chosen else {}


@dataclass(frozen=True)
class Docker:
    """Docker; the base image is what the Dockerfiles name, or $BASE_IMAGE."""

    def prepare(self) -> Mapping[str, str]:
        return _base_override()

    def fingerprint(self, image: str) -> str:
        return shell.run(["docker", "images", "--quiet", "--no-trunc", image]).strip()

    def build(self, dockerfile: Path, tag: str, arguments: Mapping[str, str], log: Path) -> None:
        options: list[str | Path] = ["--file", dockerfile, "--tag", tag, *_arguments(arguments)]
        shell.run(["docker", "build", *options, REPOSITORY], log=log)

    def tag(self, image: str, alias: str) -> None:
        shell.run(["docker", "tag", image, alias])

    def tags(self, repository: str) -> list[str]:
        return shell.run(["docker", "images", "--format", "{{.Tag}}", repository]).split()

    def remove(self, image: str) -> None:
        shell.run(["docker", "rmi", image])

    def push(self, image: str, target: str) -> str:
        self.tag(image, target)
        shell.run(["docker", "push", "--quiet", target])
        found = shell.run(["docker", "inspect", "--format", '{{join .RepoDigests "\\n"}}', target])
        own = target.rpartition(":")[0] + "@"
        return next((line.removeprefix(own) for line in found.split() if line.startswith(own)), "")

    def size(self, image: str) -> str:
        return shell.run(["docker", "images", "--format", "{{.Size}}", image]).strip()


@dataclass(frozen=True)
class Buildah:
    """Buildah, with the local base image unless $BASE_IMAGE names another."""

    where: Layout

    def prepare(self) -> Mapping[str, str]:
        debian.ensure()
        return _base_override() or {"BASE_IMAGE": baseimage.ensure(self.where)}

    def _run(self, *words: str | Path, log: Path | None = None) -> str:
        return shell.run(smallimages.buildah(self.where, *words), log=log)

    def _images(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = json.loads(self._run("images", "--json")) or []
        return listed

    def _find(self, image: str) -> dict[str, Any]:
        return next((item for item in self._images() if image in (item.get("names") or [])), {})

    def fingerprint(self, image: str) -> str:
        return str(self._find(image).get("id", ""))

    def build(self, dockerfile: Path, tag: str, arguments: Mapping[str, str], log: Path) -> None:
        options = ("--isolation", "chroot", "--layers", "--file", dockerfile, "--tag", tag)
        mounts = (
            [] if _base_override() else [f"--volume={mount}:ro" for mount in baseimage.apt_mounts(self.where)]
        )
        self._run("bud", *options, *mounts, *_arguments(arguments), REPOSITORY, log=log)

    def tag(self, image: str, alias: str) -> None:
        self._run("tag", image, alias)

    def tags(self, repository: str) -> list[str]:
        names = [name for item in self._images() for name in item.get("names") or []]
        return [name.removeprefix(f"{repository}:") for name in names if name.startswith(f"{repository}:")]

    def remove(self, image: str) -> None:
        self._run("rmi", image)

    def push(self, image: str, target: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            digest = Path(folder, "digest")
            # As Docker has it: a registry on this machine may speak plain HTTP.
            local = target.startswith(("localhost:", "127."))
            self._run(
                "push",
                f"--tls-verify={str(not local).lower()}",
                "--digestfile",
                digest,
                image,
                f"docker://{target}",
            )
            return digest.read_text(encoding="utf-8").strip()

    def size(self, image: str) -> str:
        return str(self._find(image).get("size", ""))


def choose(where: Layout) -> Engine:
    """Docker where its engine answers."""
    return Docker() if docker_answers() else Buildah(where)
