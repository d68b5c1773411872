"""Names of children, for every name that an MCPServer can legally have."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_operator.manifests import names

LABEL = r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?"
LEGAL = st.from_regex(rf"{LABEL}(\.{LABEL}){{0,3}}", fullmatch=True).filter(lambda name: len(name) <= 253)
DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


@given(LEGAL, st.integers(min_value=1, max_value=10**9))
def test_names_are_valid(name: str, epoch: int) -> None:
    for child in (names.service(name), names.pod(name, epoch)):
        assert DNS_1035.fullmatch(child)
        assert len(child) <= 63


@given(LEGAL)
def test_names_are_stable(name: str) -> None:
    assert names.base(name) == names.base(name)


@given(st.lists(LEGAL, min_size=2, max_size=30, unique=True))
def test_names_are_distinct(several: list[str]) -> None:
    bases = [names.base(name) for name in several]
    assert len(set(bases)) == len(several)
    assert len({names.pod(name, epoch) for name in several for epoch in (1, 2, 11)}) == 3 * len(several)


@given(LEGAL)
def test_a_name_is_never_that_of_the_children_of_another(name: str) -> None:
    made = names.base(name)
    assert made == name or names.base(made) != made


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("time", "time"),
        ("7zip", "7zip"),
        ("a" * 40, "a" * 40),
        ("a.b", "a-b-2b0f0d31"),
        ("a" * 63, "a" * 31 + "-7d3e74a0"),
    ],
)
def test_a_short_and_plain_name_stays_and_every_other_gets_a_hash(name: str, base: str) -> None:
    assert len(names.base(name)) == len(base)
    assert names.base(name)[:-8] == base[:-8]
    if "-" not in base:
        assert names.base(name) == base


def test_names_that_differ_only_in_the_last_of_many_characters_stay_apart() -> None:
    assert names.base("x" * 252 + "a") != names.base("x" * 252 + "b")


def test_a_name_that_looks_hashed_is_hashed_again() -> None:
    assert names.base("time-0a1b2c3d") not in {"time-0a1b2c3d", names.base("time")}


def test_the_url_leaves_the_domain_of_the_cluster_open() -> None:
    assert names.url("time", "default") == "http://mcp-time.default.svc/mcp"
    assert "mcp-time.default.svc.*" in names.hosts("time", "default")
