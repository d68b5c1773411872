"""What the local node needs of the operating system, installed by apt where it is missing."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from devcluster import hostconfig, say, shell
from devcluster.layout import REPOSITORY

# a program (or, with a slash, a file) and the package that brings it
NEEDS = {
    "buildah": "buildah",
    "conntrack": "conntrack",
    "containerd": "containerd",
    "debootstrap": "debootstrap",
    "gcc": "gcc",
    "ip": "iproute2",
    "ipset": "ipset",
    "iptables-save": "iptables",
    "nft": "nftables",
    "openssl": "openssl",
    "runc": "runc",
    "/usr/include/stdlib.h": "libc6-dev",
    "/usr/lib/cni/ptp": "containernetworking-plugins",
    "/usr/share/debootstrap/scripts/trixie": "debootstrap",
}
PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
CNI_PLUGINS = Path("/usr/lib/cni")


def missing() -> list[str]:
    """Packages whose programs are not there."""
    found = {name: Path(name).exists() if name.startswith("/") else shutil.which(name) for name in NEEDS}
    return sorted({package for name, package in NEEDS.items() if not found[name]})


def ensure() -> None:
    """Install what is missing.

    Raises:
        ClusterError: this is no system with apt, or the installation failed.
    """
    packages = missing()
    if not packages:
        return
    if not shutil.which("apt-get"):
        raise say.ClusterError(
            f"missing here: {', '.join(packages)} (Debian's names), and there is no apt-get to install them. "
            "Install them, or start a Docker engine: then kind is used instead."
        )
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}

    def install() -> None:
        # Both each time: an update that failed in part ends as if all were well.
        shell.run(["apt-get", "update", "-qq"], env=quiet)
        shell.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages], env=quiet)

    with say.step(f"installing {' '.join(packages)}"):
        shell.persistently(install)


def become_root() -> None:
    """Start over under sudo when this is not root; returns only as root.

    Raises:
        ClusterError: there is no sudo.
    """
    if os.geteuid() == 0:
        return
    sudo = shutil.which("sudo")
    if not sudo:
        raise say.ClusterError(
            "The local node needs root (containers, network) and sudo is missing. Run as root, "
            "or start a Docker engine: then kind is used instead."
        )
    say.line("==> the local node needs root: going on under sudo")
    settings = [f"{name}={value}" for name, value in kept_under_sudo(os.environ, Path.home()).items()]
    program = [sudo, "env", *settings, sys.executable, "-m", "devcluster", *sys.argv[1:]]
    os.execv(sudo, program)  # noqa: S606 # no shell is wanted


def kept_under_sudo(variables: Mapping[str, str], home: Path) -> dict[str, str]:
    """What the program under sudo needs of this one's environment: its cache, and how to reach registries."""
    names = ("PATH", "BASE_IMAGE", "GOPROXY", "GONOSUMDB", "GOTOOLCHAIN", *PROXY_VARIABLES)
    passed = (*names, *hostconfig.BUNDLE_VARIABLES, *hostconfig.PASSED_VARIABLES)
    kept = {name: variables[name] for name in passed if variables.get(name)}
    caches = variables.get("XDG_CACHE_HOME") or str(home / ".cache")
    return {**kept, "XDG_CACHE_HOME": caches, "PYTHONPATH": str(REPOSITORY / "tests/cluster")}


def give_to_caller(path: Path) -> None:
    """Under sudo: let the user who called it own a file or folder, though root made it."""
    user, group = os.environ.get("SUDO_UID"), os.environ.get("SUDO_GID")
    if user and group:
        os.chown(path, int(user), int(group))
