"""Clients of other libraries, each as a program in an environment of its own."""

import sys
from pathlib import Path

from suitekit import cache, suite

SCRIPTS = suite.HOME / "clients"
LOCKS = suite.HOME.parents[1] / "requirements"
UV = str(Path(sys.executable).with_name("uv"))


def command(name: str) -> list[str]:
    """The command of a client, installed when it is not there yet; the URL is its last argument.

    Names: `mcp 1`, `fastmcp 4`, `typescript 1`, `typescript 2`, and `typescript 2 auto`, which prefers the
    revision without sessions.

    Raises:
        InstallError: it could not be installed.

    """
    library, major, *mode = name.split()
    if library == "typescript":
        script = SCRIPTS / "typescript.cjs"
        folder = str(suite.installed().directory)
        return [str(suite.NODE / "bin" / "node"), str(script), folder, major, *(mode or ["legacy"])]
    lock = LOCKS / ("client-mcp1.txt" if library == "mcp" else "client-fastmcp.txt")
    environment = cache.folder(lock.stem, [lock], lambda folder: _environment(folder, lock))
    return [str(environment / "bin" / "python"), str(SCRIPTS / f"{library}{major}.py")]


def _environment(folder: Path, lock: Path) -> None:
    python = folder / "bin" / "python"
    cache.install([UV, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)], folder.parent)
    options = ["--quiet", "--require-hashes", "--python", str(python)]
    cache.install([UV, "pip", "install", *options, "-r", str(lock)], folder)
