"""No word that is promised and never said: what the API or the contract defines is used by the code."""

import re
from enum import StrEnum
from pathlib import Path

import pytest

from mcp_operator.core.api import ConditionStatus, ConditionType, ErrorPhase, Phase, Reason, RecoveryAction
from mcp_relay_api import paths

ROOT = Path(__file__).resolve().parents[3]
API = ROOT / "operator/mcp_operator/core/api"


def code(*folders: str) -> str:
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return "\n".join(path.read_text(encoding="utf-8") for path in files if API not in path.parents)


@pytest.mark.parametrize(
    "vocabulary",
    [Reason, ErrorPhase, Phase, ConditionType, ConditionStatus, RecoveryAction],
    ids=lambda words: words.__name__,
)
def test_every_word_of_the_api_is_said_somewhere(vocabulary: type[StrEnum]) -> None:
    said = set(re.findall(rf"\b{vocabulary.__name__}\.([A-Z_]+)", code("operator/mcp_operator")))
    assert {word.name for word in vocabulary} - said == set()


def test_every_setting_of_the_relay_is_read_by_it() -> None:
    read = set(re.findall(r"paths\.(ENV_[A-Z_]+)", code("sidecar/mcp_sidecar")))
    assert {name for name in vars(paths) if name.startswith("ENV_")} - read == set()


def test_everything_else_of_the_contract_is_used_by_both_sides_or_set_by_one_for_the_other() -> None:
    used = code("operator/mcp_operator", "sidecar/mcp_sidecar")
    constants = [name for name in vars(paths) if name.isupper()]
    assert [name for name in constants if not re.search(rf"\bpaths\.{name}\b", used)] == []
