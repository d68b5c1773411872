"""What is installed once into the user's cache, under a name that changes with what it is made from."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

INSTALL_SECONDS = 600.0
RETRY_PAUSES = (2.0, 10.0)
"""Seconds before an installer is run again: a registry or a connection may fail once."""


class InstallError(Exception):
    """An installer failed; the message has what it said."""


def folder(name: str, pins: Sequence[Path], fill: Callable[[Path], None]) -> Path:
    """The folder for `name` made from the files `pins`; `fill` fills a new one, which appears whole or not.

    Raises:
        InstallError: from `fill`.

    """
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in pins)).hexdigest()[:16]
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    directory = caches / "mcpserver-operator" / "conformance" / f"{name}-{digest}"
    if not directory.exists():
        sys.stderr.write(f"==> installing {name}\n")
        _make(directory, fill)
    return directory


def _make(directory: Path, fill: Callable[[Path], None]) -> None:
    directory.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=directory.parent, prefix=".new-"))
    try:
        fill(draft)
        draft.rename(directory)
    except OSError:
        if not directory.exists():  # else somebody made it at the same time
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def install(command: Sequence[str], directory: Path, path: str | None = None) -> None:
    """Run an installer in `directory`; `path` goes before PATH.

    Raises:
        InstallError: it failed every time.

    """
    for pause in RETRY_PAUSES:
        try:
            _install(command, directory, path)
        except InstallError as error:
            sys.stderr.write(f"    this is tried again in {pause:g} s: {error}\n")
            time.sleep(pause)
        else:
            return
    _install(command, directory, path)


def _install(command: Sequence[str], directory: Path, path: str | None) -> None:
    places = [*([path] if path else []), os.environ.get("PATH", "")]
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "PATH": os.pathsep.join(places)},
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if done.returncode:
        raise InstallError(f"{Path(command[0]).name} failed: {done.stderr.strip()}")
