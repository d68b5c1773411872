"""The folder `operator/` must never take the place of Python's own module of that name."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=30
    )


def test_python_started_at_the_root_imports_its_own_operator_module() -> None:
    # -c puts the working directory first on the path: the hardest case.
    result = _python("-c", "import operator, sys; assert sys.path[0] == ''; print(operator.add(1, 2))")
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "3"


def test_python_started_inside_the_folder_imports_its_own_operator_module() -> None:
    result = _python("-c", "import sys; sys.path.insert(0, 'operator'); import operator; operator.add")
    assert result.returncode == 0, result.stderr


def test_no_package_marker_stands_in_the_folder_or_in_the_test_folders() -> None:
    assert not (ROOT / "operator/__init__.py").exists()
    assert not (ROOT / "operator.py").exists()
    for folder in ("unit", "integration", "e2e", "chart"):
        assert not (ROOT / "tests" / folder / "__init__.py").exists()
    assert list((ROOT / "tests/unit").rglob("__init__.py")) == []


def test_the_linter_refuses_a_module_that_shadows_the_standard_library(tmp_path: Path) -> None:
    (tmp_path / "operator").mkdir()
    (tmp_path / "operator/__init__.py").touch()
    result = _python(
        "-m",
        "ruff",
        "check",
        "--no-cache",
        "--config",
        str(ROOT / "pyproject.toml"),
        "--select",
        "A005",
        str(tmp_path),
    )
    assert result.returncode == 1
    assert "A005" in result.stdout
