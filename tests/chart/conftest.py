"""Helm and its checkers, from the environment (HELM, KUBECONFORM, HELM_UNITTEST) or built by devcluster."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from crdgen import conform

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm"
BUILD_SECONDS = 900

Render = Callable[..., str]


def _tool(name: str) -> str:
    given = os.environ.get(name.upper().replace("-", "_"))
    if given:
        return given
    found = subprocess.run(
        [sys.executable, "-m", "devcluster", "tool", name],
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests/cluster")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=BUILD_SECONDS,
    )
    return found.stdout.strip()


@pytest.fixture(scope="session")
def chart() -> Path:
    return CHART


@pytest.fixture(scope="session")
def helm() -> str:
    return _tool("helm")


@pytest.fixture(scope="session")
def kubeconform() -> str:
    return _tool("kubeconform")


@pytest.fixture(scope="session")
def helm_unittest() -> str:
    return _tool("helm-unittest")


@pytest.fixture(scope="session")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one strict schema per kind, the resource's own among them."""
    folder = tmp_path_factory.mktemp("schemas")
    definitions = json.loads((ROOT / "tests/chart/kubernetes.json").read_text(encoding="utf-8"))
    for name, schema in conform.schemas(definitions).items():
        (folder / f"{name}.json").write_text(json.dumps(schema), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def render(helm: str) -> Render:
    """`helm template` with `--set` arguments; fails the test when Helm refuses."""

    def run(*settings: str) -> str:
        arguments = [part for setting in settings for part in ("--set", setting)]
        command = [helm, "template", "op", str(CHART), "--namespace", "mcp-system", *arguments]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run
