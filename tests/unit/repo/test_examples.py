"""The manifests that people apply first: all are told of, tried and valid."""

from pathlib import Path

import pytest
import yaml

from mcp_operator.core.api import MCPServerSpec

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))
PRIVATE = [path for path in EXAMPLES if path.parent.name == "private"]
PUBLIC = [path for path in EXAMPLES if path.stem not in {"broken", "jwt", "remote"} and path not in PRIVATE]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_a_spec_that_the_operator_reads(path: Path) -> None:
    servers = [item for item in yaml.safe_load_all(path.read_text()) if item["kind"] == "MCPServer"]
    assert [item["metadata"]["name"] for item in servers] == [path.stem]
    spec = MCPServerSpec.parse(servers[0]["spec"])
    assert spec.command or spec.remote


@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.stem)
def test_a_public_server_stands_in_the_table_and_in_the_tests(path: Path) -> None:
    below = path.relative_to(ROOT / "examples")
    assert f"](../examples/{below})" in (ROOT / "docs/servers.md").read_text(encoding="utf-8")
    assert f'"{below}"' in (ROOT / "tests/e2e/test_public_servers.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", PRIVATE, ids=lambda path: path.stem)
def test_a_private_registry_is_told_of_and_tried(path: Path) -> None:
    below = path.relative_to(ROOT / "examples")
    assert f"](../examples/{below})" in (ROOT / "docs/servers.md").read_text(encoding="utf-8")
    assert f'"{below}"' in (ROOT / "tests/e2e/test_packages.py").read_text(encoding="utf-8")
