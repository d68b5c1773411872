"""What changed since a pod was made is told by its name."""

import pytest

from mcp_operator.core import configuration

SECRET = 'Secret "keys"'
BASE = {"the spec": "1", SECRET: "a", 'ConfigMap "c"': "b"}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (BASE, {**BASE, SECRET: "z"}, 'Secret "keys" changed'),
        (BASE, {**BASE, "the spec": "2"}, "the spec changed"),
        ({**BASE, SECRET: ""}, BASE, 'Secret "keys" is there now'),
        (BASE, {**BASE, SECRET: ""}, 'Secret "keys" is gone, or a key of it'),
        (
            BASE,
            {**BASE, "the annotation mcp-session.dev/restartedAt": "x"},
            "the annotation mcp-session.dev/restartedAt changed",
        ),
        (BASE, {**BASE, "the spec": "2", SECRET: "z"}, 'Secret "keys" changed, the spec changed'),
    ],
)
def test_what_changed_is_named(old: dict[str, str], new: dict[str, str], told: str) -> None:
    assert configuration.change(old, new) == told


OWN = "its own Secret (token and keys)"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        # The digests of all objects are made with a key of that Secret.
        (
            {**BASE, OWN: "1"},
            {"the spec": "1", SECRET: "z", 'ConfigMap "c"': "y", OWN: "2"},
            f"{OWN} changed",
        ),
        (
            {**BASE, OWN: "1"},
            {**BASE, SECRET: "", OWN: "2"},
            'Secret "keys" is gone, or a key of it, its own',
        ),
        # Which keys it has follows from the spec.
        ({**BASE, OWN: "1"}, {**BASE, "the spec": "2", OWN: "2"}, "the spec changed"),
        (
            {**BASE, OWN: "1"},
            {**BASE, "the spec": "2", SECRET: "z", OWN: "2"},
            'Secret "keys" changed, the spec',
        ),
        # Made by an operator that did not look at it.
        (BASE, {**BASE, SECRET: "z", OWN: "2"}, 'Secret "keys" changed'),
        (BASE, {**BASE, OWN: "2"}, "the operator was upgraded"),
    ],
)
def test_a_new_token_is_told_as_that_and_not_as_a_change_of_what_is_referred_to(
    old: dict[str, str], new: dict[str, str], told: str
) -> None:
    found = configuration.change(old, new)
    assert found.startswith(told)
    assert ("its own" in found) is ("its own" in told)


def test_a_change_of_none_of_the_parts_is_the_operators_own() -> None:
    assert configuration.change(BASE, BASE).startswith("the operator was upgraded")


def test_many_changes_are_counted() -> None:
    old = {f'Secret "{n}"': "1" for n in range(6)}
    told = configuration.change(old, dict.fromkeys(old, "2"))
    assert told == 'Secret "0" changed, Secret "1" changed, Secret "2" changed and 3 more'


def test_a_pod_without_the_annotation_tells_what_it_may_be() -> None:
    assert "a referenced Secret or ConfigMap" in configuration.change({}, BASE)


@pytest.mark.parametrize("text", ["", "no JSON", "[1]", "[" * 100_000])
def test_an_annotation_that_cannot_be_read_counts_as_none(text: str) -> None:
    assert configuration.read(text) == {}


def test_what_is_written_can_be_read() -> None:
    assert configuration.read(configuration.write(BASE)) == BASE


def test_only_what_was_missing_and_is_there_now_completes_a_pod() -> None:
    assert configuration.completed({**BASE, SECRET: ""}, BASE)
    assert not configuration.completed(BASE, {**BASE, SECRET: "z"})
    assert not configuration.completed({**BASE, SECRET: ""}, {**BASE, SECRET: ""})
