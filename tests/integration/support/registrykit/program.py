"""Debian's registry, unpacked into the user's cache: nothing is installed, no root is needed."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

PACKAGE = "docker-registry"
FETCH_SECONDS = 300


def path() -> Path:
    """The program; fetched if it is not there yet.

    Raises:
        RuntimeError: it cannot be had here.

    """
    installed = shutil.which(PACKAGE)
    if installed:
        return Path(installed)
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = caches / "mcpserver-operator" / PACKAGE
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        # One after the other: of two that update the lists of packages at once, one fails.
        with (folder.parent / f".{PACKAGE}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                _make(folder)
    return folder / "usr/bin" / PACKAGE


def _make(folder: Path) -> None:
    draft = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".new-"))
    try:
        _fetch(draft)
        draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _fetch(draft: Path) -> None:
    try:
        _run(["apt-get", "download", "-q", PACKAGE], draft)
    except RuntimeError:
        _run(["apt-get", "update", "-qq"], draft)  # no lists yet
        _run(["apt-get", "download", "-q", PACKAGE], draft)
    (package,) = draft.glob("*.deb")
    _run(["dpkg-deb", "--extract", package.name, "."], draft)
    package.unlink()


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
