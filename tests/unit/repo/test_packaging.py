"""One wheel, one group of locked dependencies per image, and nothing declared twice with different words."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = {"mcp_operator", "mcp_sidecar", "mcp_relay_api", "mcpsrv"}
# Image group and the lock made from it by `make lock`.
LOCKS = {
    "operator-image": "operator",
    "relay-compiler": "compiler",
    "sidecar-image": "sidecar",
    "runtime-image": "runtime",
    "testserver-image": "testserver",
    "cli": "cli",
    "dev": "dev",
    "client-mcp1": "client-mcp1",
    "client-fastmcp": "client-fastmcp",
}


@pytest.fixture(scope="module")
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _name(requirement: str) -> str:
    return re.split(r"[<>=!~;\[ ]", requirement, maxsplit=1)[0].lower().replace("_", "-").replace(".", "-")


def _requirements(groups: dict[str, list[Any]], group: str) -> list[str]:
    listed: list[str] = []
    for entry in groups[group]:
        listed += [entry] if isinstance(entry, str) else _requirements(groups, entry["include-group"])
    return listed


def _locked(lock: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
    return {
        _name(name): version for name, version in re.findall(r"^([\w.-]+)==([^ ;\\]+)", text, re.MULTILINE)
    }


def test_dependencies_are_the_union_of_both_images_groups(pyproject: dict[str, Any]) -> None:
    groups = pyproject["dependency-groups"]
    union = set(groups["operator-image"]) | set(groups["sidecar-image"])
    assert sorted(pyproject["project"]["dependencies"]) == sorted(union)


@pytest.mark.parametrize(("group", "lock"), LOCKS.items())
def test_every_package_of_a_group_is_locked_with_hashes(
    group: str, lock: str, pyproject: dict[str, Any]
) -> None:
    locked = _locked(lock)
    missing = [r for r in _requirements(pyproject["dependency-groups"], group) if _name(r) not in locked]
    assert missing == []
    text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
    assert text.count("==") <= text.count("--hash=sha256:")


@pytest.mark.parametrize("lock", ["operator", "compiler", "sidecar"])
def test_an_image_gets_the_versions_that_were_tested(lock: str) -> None:
    tested = _locked("dev")
    assert {name: version for name, version in _locked(lock).items() if tested[name] != version} == {}


def test_the_sidecar_image_stays_free_of_the_operators_libraries() -> None:
    assert not {"kopf", "kubernetes-asyncio", "aiohttp", "httpx", "pydantic", "mcp"} & set(_locked("sidecar"))


def test_the_command_line_is_an_extra_that_no_image_carries(pyproject: dict[str, Any]) -> None:
    assert pyproject["project"]["optional-dependencies"]["cli"] == pyproject["dependency-groups"]["cli"]
    for lock in ("operator", "sidecar", "runtime", "testserver"):
        assert not {"typer", "rich"} & set(_locked(lock)), lock
    for dockerfile in ROOT.glob("*/*Dockerfile"):
        assert "mcpsrv" not in dockerfile.read_text(encoding="utf-8")


def test_the_wheel_holds_exactly_the_four_packages(tmp_path: Path) -> None:
    build = "import sys, hatchling.build; print(hatchling.build.build_wheel(sys.argv[1]))"
    command = [sys.executable, "-c", build, str(tmp_path)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=50)
    assert result.returncode == 0, result.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == PACKAGES
    assert "mcp_operator/core/api/spec.py" in names
