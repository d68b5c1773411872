"""The two images the node itself needs, made of one static program each."""

import shutil
import tempfile
from pathlib import Path

from devcluster import configs, say, shell
from devcluster.layout import Layout

SOURCE = Path(__file__).resolve().parents[1] / "node"


def ctr(where: Layout, *words: str | Path) -> list[str | Path]:
    """Argument list of containerd's own client, in the namespace of Kubernetes."""
    return ["ctr", "--address", where.containerd_socket, "--namespace", "k8s.io", *words]


def buildah(where: Layout, *words: str | Path) -> list[str | Path]:
    """Argument list of buildah with an image store of its own."""
    stores = ("--root", where.buildah, "--runroot", where.cache / "buildah-run")
    return ["buildah", *stores, "--storage-driver", "overlay", *words]


def archive(where: Layout, name: str) -> Path:
    """Where a small image is kept as a file."""
    return where.cache / "images" / f"{name}.tar"


def build(where: Layout, coredns: Path) -> None:
    """Make the archives that are not in the cache."""
    pause, dns = archive(where, "pause-1"), archive(where, f"{coredns.parent.name}")
    if not pause.exists():
        with say.step("making the pause image"):
            _build_pause(where, pause)
    if not dns.exists():
        with say.step("making the DNS image"):
            _pack(where, coredns, configs.DNS_IMAGE, dns)


def _build_pause(where: Layout, target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "pause")
        shell.run(["gcc", "-static", "-Os", "-s", "-o", program, SOURCE / "pause.c"])
        _pack(where, program, configs.PAUSE_IMAGE, target)


def _pack(where: Layout, program: Path, image: str, target: Path) -> None:
    """An image that is one program, as a docker archive."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy2(program, Path(folder, program.name))
        name = program.name
        Path(folder, "Dockerfile").write_text(
            f'FROM scratch\nCOPY {name} /{name}\nUSER 65532:65532\nENTRYPOINT ["/{name}"]\n', encoding="utf-8"
        )
        shell.run(buildah(where, "bud", "--isolation", "chroot", "--tag", image, folder))
    unfinished = target.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    shell.run(buildah(where, "push", image, f"docker-archive:{unfinished}:{image}"))
    unfinished.replace(target)


def load(where: Layout) -> None:
    """Import what containerd does not have."""
    present = shell.run(ctr(where, "images", "list", "--quiet")).split()
    for image, path in _archives(where).items():
        if image not in present:
            shell.run(ctr(where, "images", "import", path))


def transfer(where: Layout, image: str) -> None:
    """Copy one image from buildah's store to containerd's."""
    with tempfile.TemporaryDirectory(dir=where.cache) as folder:
        path = Path(folder, "image.tar")
        shell.run(buildah(where, "push", image, f"docker-archive:{path}:{image}"))
        shell.run(ctr(where, "images", "import", path))


def _archives(where: Layout) -> dict[str, Path]:
    from devcluster import gotools

    dns = gotools.tool("coredns", where).parent.name
    return {configs.PAUSE_IMAGE: archive(where, "pause-1"), configs.DNS_IMAGE: archive(where, dns)}
