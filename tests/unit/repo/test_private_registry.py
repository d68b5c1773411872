"""The private registry of the end-to-end tests: what its index says of a package holds for the package."""

import runpy
import time
from pathlib import Path

import pytest

REGISTRY = Path(__file__).parents[2] / "e2e/servers/packages.py"


@pytest.mark.parametrize("pack", ["wheel", "tarball"])
def test_a_package_is_the_same_whenever_it_is_packed(monkeypatch: pytest.MonkeyPatch, pack: str) -> None:
    make = runpy.run_path(str(REGISTRY))[pack]
    early = make()
    later = time.time() + 3600
    monkeypatch.setattr(time, "time", lambda: later)
    assert make() == early
