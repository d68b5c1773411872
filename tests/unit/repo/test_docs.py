"""What the pages say of the tree is so: links lead somewhere, layers and rights are the checked ones."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ARROWS = re.compile(r"`(__main__ → [^`]*)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_page_can_be_found_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES[1:] if f"(docs/{page.name})" not in readme] == []


def test_the_layers_in_the_architecture_are_those_that_the_import_contracts_check() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    checked = [contract["layers"] for contract in contracts["contracts"] if contract["type"] == "layers"]
    told = ARROWS.findall((ROOT / "docs/architecture.md").read_text(encoding="utf-8"))
    assert [line.split(" → ") for line in told] == checked


def test_the_rights_in_the_security_page_are_those_of_the_chart() -> None:
    template = (ROOT / "helm/templates/_helpers.tpl").read_text(encoding="utf-8")
    rules = yaml.safe_load(template.split('define "mcpserver-operator.rules" -}}')[1].split("{{- end }}")[0])
    page = (ROOT / "docs/security.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    for rule in rules:
        for resource in rule["resources"]:
            row = next(row for row in rows if f"`{resource.split('/')[0]}`" in row.split("|")[1])
            assert all(verb in row for verb in (*rule["verbs"], *resource.split("/")[1:])), resource
