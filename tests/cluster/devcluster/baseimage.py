"""A stand-in for `python:3.13-slim` where no container registry is in reach: Debian by debootstrap."""

import hashlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from devcluster import hostconfig, say, shell, smallimages
from devcluster.layout import Layout

IMAGE = "localhost/devcluster-base:1"
PACKAGES = ("ca-certificates", "python3", "python3-venv")
# documentation, translations and package lists: nothing that runs in an image reads them
USELESS = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/lintian",
    "usr/share/bug",
    "var/lib/apt/lists",
    "var/cache/apt",
    "var/cache/debconf",
    "var/log",
)
TARGETS = "$(ORIGIN)|$(REPO_URI)|$(COMPONENT)|$(CODENAME)|$(CREATED_BY)"


def choose_mirror(targets: str) -> tuple[str, str]:
    """Suite and mirror, from `apt-get indextargets` in the format above: the mirror that this machine uses.

    Debian 13 has the Python that the images are made for; another distribution's own release has to do.

    Raises:
        ClusterError: no distribution's main archive is configured.
    """
    for line in targets.splitlines():
        origin, uri, component, codename, created_by = line.split("|")
        if component == "main" and created_by == "Packages" and "-" not in codename:
            return ("trixie" if origin == "Debian" else codename), uri
    raise say.ClusterError("apt has no package lists to tell a mirror by: run `apt-get update`")


def apt_mounts(where: Layout) -> list[str]:
    """For builds on the base image, which names no mirror: that of this machine, with apt's settings here."""
    suite, mirror = choose_mirror(_index_targets())
    sources = where.base / "sources.list"
    sources.write_text(f"deb {mirror} {suite} main\n", encoding="utf-8")
    return [f"{sources}:/etc/apt/sources.list", "/etc/apt/apt.conf.d:/etc/apt/apt.conf.d"]


def ensure(where: Layout) -> str:
    """Build the base image unless this very one is there; its name."""
    listing = shell.run([sys.executable, "-m", "pip", "config", "list"])
    config = hostconfig.observe(listing, Path.home())
    key = _key(config)
    stamp = where.cache / "images" / "base.key"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == key and _exists(where):
        return IMAGE
    rootfs = _bootstrap(where)
    with say.step("making the base image"):
        _pack(where, rootfs, config)
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(key, encoding="utf-8")
    return IMAGE


def _key(config: hostconfig.HostConfig) -> str:
    facts = [dict(config.environment), dict(config.files), PACKAGES, USELESS, render(config)]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _exists(where: Layout) -> bool:
    return shell.succeeds(smallimages.buildah(where, "inspect", "--type", "image", IMAGE))


def _bootstrap(where: Layout) -> Path:
    """The slimmed file system; made once."""
    rootfs = where.base / f"rootfs-{hashlib.sha256(repr((PACKAGES, USELESS)).encode()).hexdigest()[:8]}"
    if rootfs.exists():
        return rootfs
    suite, mirror = choose_mirror(_index_targets())
    unfinished = where.base / "unfinished"

    def bootstrap() -> None:
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        include = f"--include={','.join(PACKAGES)}"
        shell.run(
            ["debootstrap", "--variant=minbase", include, suite, unfinished, mirror],
            log=where.logs / "debootstrap.log",
        )

    with say.step(f"bootstrapping Debian {suite} (once, about a minute)"):
        shell.persistently(bootstrap)
        _slim(unfinished)
    unfinished.replace(rootfs)
    return rootfs


def _index_targets() -> str:
    targets = shell.run(["apt-get", "indextargets", "--format", TARGETS])
    if not targets.strip():
        with say.step("apt-get update"):
            shell.persistently(lambda: shell.run(["apt-get", "update", "-qq"]))
        targets = shell.run(["apt-get", "indextargets", "--format", TARGETS])
    return targets


def _slim(rootfs: Path) -> None:
    for name in USELESS:
        shutil.rmtree(rootfs / name, ignore_errors=True)
        (rootfs / name).mkdir(parents=True, exist_ok=True)
    # the mirror that apt used for the bootstrap stays out of the image
    (rootfs / "etc/apt/sources.list").unlink(missing_ok=True)
    # as in the image this stands for: `python` is there, and pip may install
    (rootfs / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    for marker in rootfs.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        marker.unlink()


def render(config: hostconfig.HostConfig) -> str:
    """The Dockerfile of the base image."""
    environment = " \\\n    ".join(
        f"{name}={json.dumps(value)}" for name, value in config.environment.items()
    )
    copies = "".join(f"COPY files{path} {path}\n" for path in config.files)
    return f'FROM scratch\nCOPY rootfs/ /\n{copies}ENV {environment}\nCMD ["python3"]\n'


def _pack(where: Layout, rootfs: Path, config: hostconfig.HostConfig) -> None:
    with tempfile.TemporaryDirectory(dir=where.base) as folder:
        context = Path(folder)
        for path, text in config.files.items():
            target = context / "files" / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        (context / "Dockerfile").write_text(render(config), encoding="utf-8")
        _link_tree(rootfs, context / "rootfs")
        shell.run(
            smallimages.buildah(where, "bud", "--isolation", "chroot", "--tag", IMAGE, context),
            log=where.logs / "image-base.log",
        )


def _link_tree(source: Path, target: Path) -> None:
    """A copy of a tree by hard links: a build context must lie in one folder."""
    shutil.copytree(source, target, symlinks=True, copy_function=os.link)
