"""The product's images and the test image: built when their inputs change, named by a hash of these."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from devcluster import gotools, say, shell
from devcluster.engines import Engine
from devcluster.layout import REPOSITORY, Layout

REGISTRY = "localhost"
LAUNCHER = REPOSITORY / "build/mcp-launcher"
LAUNCHER_SOURCE = REPOSITORY / "sidecar/launcher"
SBOM = "requirements/sbom.py"
"""Writes what an image holds, as its build runs."""


@dataclass(frozen=True)
class Image:
    """One image; its `inputs` (files and folders of the repository); its `base` (another of these)."""

    name: str
    dockerfile: str
    inputs: tuple[str, ...]
    base: str = ""

    @property
    def repository(self) -> str:
        """Name without tag."""
        return f"{REGISTRY}/mcpserver-operator/{self.name}"

    @property
    def alias(self) -> str:
        """The name under which people and tests find the newest build."""
        return f"{self.repository}:dev"


IMAGES = (
    Image(
        "operator",
        "operator/Dockerfile",
        (SBOM, "requirements/operator.txt", "operator/mcp_operator", "sidecar/mcp_relay_api"),
    ),
    Image(
        "relay",
        "sidecar/Dockerfile",
        (
            SBOM,
            "requirements/sidecar.txt",
            "requirements/compiler.txt",
            "sidecar/compiler",
            "sidecar/mcp_sidecar",
            "sidecar/mcp_relay_api",
            "build/mcp-launcher",
        ),
    ),
    Image("runtime", "sidecar/runtime.Dockerfile", (SBOM, "requirements/runtime.txt")),
    Image(
        "testserver",
        "tests/e2e/testserver.Dockerfile",
        ("requirements/testserver.txt", "requirements/client-mcp1.txt", "tests/e2e/servers"),
        base="runtime",
    ),
)
# What only the tests of public servers need.
PUBLIC = (
    Image("browser", "examples/servers/playwright.Dockerfile", (), base="runtime"),
    Image("redis", "tests/e2e/redis.Dockerfile", ()),
)


def digest(root: Path, inputs: tuple[str, ...], extra: str = "") -> str:
    """Twelve hexadecimal digits over names and contents of `inputs` below `root`, and `extra`."""
    total = hashlib.sha256(extra.encode())
    for name in inputs:
        path = root / name
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in files:
            if "__pycache__" not in file.parts:
                total.update(f"\0{file.relative_to(root)}\0".encode() + file.read_bytes())
    return total.hexdigest()[:12]


def replaced(present: Iterable[str], current: Iterable[str]) -> list[str]:
    """Those of `present` (full references) that are older builds of the images of `current`."""
    kept = set(current)
    repositories = tuple(f"{reference.rpartition(':')[0]}:dev-" for reference in kept)
    return [name for name in present if name.startswith(repositories) and name not in kept]


def build_all(engine: Engine, where: Layout, chosen: Iterable[Image] = IMAGES) -> dict[str, str]:
    """Build what changed; image name to full reference, such as `localhost/…/relay:dev-0123456789ab`."""
    with shell.lock(where.cache / ".images.lock"):
        return _build_all(engine, where, chosen)


def _build_all(engine: Engine, where: Layout, images: Iterable[Image]) -> dict[str, str]:
    arguments = engine.prepare()
    with say.step("building the launcher"):
        gotools.build_launcher(LAUNCHER_SOURCE, LAUNCHER)
    references: dict[str, str] = {}
    for image in images:
        chosen = {"BASE_IMAGE": references[image.base]} if image.base else arguments
        references[image.name] = _build(engine, where, image, chosen)
    return references


def _build(engine: Engine, where: Layout, image: Image, arguments: Mapping[str, str]) -> str:
    base = arguments.get("BASE_IMAGE", "")
    extra = f"{base}={engine.fingerprint(base) if base else ''}"
    reference = f"{image.repository}:dev-{digest(REPOSITORY, (image.dockerfile, *image.inputs), extra)}"
    if not engine.fingerprint(reference):
        with say.step(f"building image {image.name}"):
            dockerfile = REPOSITORY / image.dockerfile
            log = where.logs / f"image-{image.name}.log"
            # Builds install packages; the layers that came about are kept.
            shell.persistently(lambda: engine.build(dockerfile, reference, arguments, log))
    engine.tag(reference, image.alias)
    _forget_older(engine, image, reference)
    say.line(f"    {reference}  {engine.size(reference)}")
    return reference


def _forget_older(engine: Engine, image: Image, current: str) -> None:
    for tag in engine.tags(image.repository):
        if tag.startswith("dev-") and not current.endswith(f":{tag}"):
            engine.remove(f"{image.repository}:{tag}")
