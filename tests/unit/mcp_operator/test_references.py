"""References to Secrets and ConfigMaps: all are found, changes are noticed, values stay unknown."""

import base64
from typing import Any

import pytest

from mcp_operator.core.api import MCPServerSpec
from mcp_operator.core.observation import MissingReference
from mcp_operator.manifests import references
from mcp_operator.manifests.references import Reference

Json = dict[str, Any]
FULL: Json = {
    "command": ["x"],
    "auth": {"type": "Bearer", "bearer": {"secretRef": {"name": "s-auth", "key": "t"}}},
    "env": [
        {"name": "A", "value": "1"},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s-env", "key": "b"}}},
        {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "c-env", "key": "c", "optional": True}}},
        {"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ],
    "envFrom": [{"secretRef": {"name": "s-from"}}, {"configMapRef": {"name": "c-from", "optional": True}}],
    "volumes": [
        {"name": "v1", "secret": {"secretName": "s-vol", "items": [{"key": "k", "path": "p"}]}},
        {"name": "v2", "configMap": {"name": "c-vol"}},
        {
            "name": "v3",
            "projected": {"sources": [{"secret": {"name": "s-pro"}}, {"configMap": {"name": "c-pro"}}]},
        },
        {"name": "v4", "emptyDir": {}},
    ],
}
FOUND = references.find(MCPServerSpec.parse(FULL))


def test_all_references_are_found_with_the_field_that_names_them() -> None:
    assert (
        Reference("Secret", "s-auth", "spec.auth.bearer.secretRef", ("t",), token=True),
        Reference("Secret", "s-env", "spec.env[1].valueFrom.secretKeyRef", ("b",)),
        Reference("ConfigMap", "c-env", "spec.env[2].valueFrom.configMapKeyRef", ("c",), optional=True),
        Reference("Secret", "s-from", "spec.envFrom[0].secretRef"),
        Reference("ConfigMap", "c-from", "spec.envFrom[1].configMapRef", optional=True),
        Reference("Secret", "s-vol", "spec.volumes[0].secret", ("k",)),
        Reference("ConfigMap", "c-vol", "spec.volumes[1].configMap"),
        Reference("Secret", "s-pro", "spec.volumes[2].projected.sources[0].secret"),
        Reference("ConfigMap", "c-pro", "spec.volumes[2].projected.sources[1].configMap"),
    ) == FOUND


def test_a_spec_without_references_has_none() -> None:
    assert references.find(MCPServerSpec.parse({"command": ["x"], "auth": {"type": "None"}})) == ()


ENV = (Reference("Secret", "s", "spec.env[0]", ("k",)), Reference("ConfigMap", "c", "spec.envFrom[0]"))
OPTIONAL = (Reference("Secret", "s", "spec.env[0]", ("k",), optional=True),)


@pytest.mark.parametrize(
    ("items", "there", "gaps"),
    [
        (ENV, {"s": {"k": "1"}, "c": {}}, ()),
        (ENV, {"s": {"other": "1"}, "c": {}}, (MissingReference("Secret", "s", "spec.env[0]", "k"),)),
        (ENV, {"c": {}}, (MissingReference("Secret", "s", "spec.env[0]"),)),
        (ENV, {"s": {"k": "1"}}, (MissingReference("ConfigMap", "c", "spec.envFrom[0]"),)),
        (OPTIONAL, {}, ()),
    ],
)
def test_what_is_needed_and_not_there_is_named(items: Any, there: Json, gaps: Any) -> None:
    assert references.missing(items, lambda _, name: there.get(name), lambda *_: {}) == gaps


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (b"secret", None),
        (b"  secret with a blank\n", None),
        (b"", "is empty"),
        (b" \n\t", "is empty"),
        (b"one\ntwo\r\n\n", None),
        (b"\n".join([b"t"] * 8), None),
        (b"\n".join([b"t"] * 9), "has more than 8 lines"),
        (b"bell\x07", "has control characters"),
        (b"one\nbe\x1bll", "has control characters"),
    ],
)
def test_a_token_that_no_header_can_carry_is_as_good_as_missing(value: bytes, fault: str | None) -> None:
    found = references.token_faults({"data": {"t": base64.b64encode(value).decode()}})
    assert found.get("t") == fault
    gaps = references.missing(FOUND[:1], lambda *_: {"t": "digest"}, lambda *_: found)
    reference = ("Secret", "s-auth", "spec.auth.bearer.secretRef", "t")
    assert gaps == ((MissingReference(*reference, fault),) if fault else ())


def test_only_a_token_must_be_of_one_line() -> None:
    faults = {"t": "is empty", "b": "is empty", "k": "is empty"}
    gaps = references.missing(FOUND, lambda *_: {"t": "", "b": "", "c": "", "k": ""}, lambda *_: faults)
    assert [gap.name for gap in gaps] == ["s-auth"]


def parts(there: Json, *gaps: tuple[str, str]) -> dict[str, str]:
    return dict(references.parts(ENV, lambda _, name: there.get(name), set(gaps), b"key"))


def test_each_object_has_a_digest_of_its_own_so_that_a_change_can_be_told_by_name() -> None:
    before = parts({"s": {"k": "1"}, "c": {"a": "1"}})
    after = parts({"s": {"k": "1"}, "c": {"a": "2"}})
    assert set(before) == {'Secret "s"', 'ConfigMap "c"'}
    assert {name for name in before if before[name] != after[name]} == {'ConfigMap "c"'}
    assert parts({"c": {}}, ("Secret", "s"))['Secret "s"'] == ""


def test_the_own_secret_has_a_digest_of_its_own_that_nothing_can_be_guessed_from() -> None:
    before = references.own_digest({"token": b"t"}, b"key")
    assert before != references.own_digest({"token": b"other"}, b"key")
    assert before != references.own_digest({"token": b"t"}, b"another key")


def test_a_token_is_followed_without_a_new_pod_unless_something_else_needs_it() -> None:
    def digest(items: tuple[Reference, ...], value: str) -> tuple[str, dict[str, str]]:
        def lookup(_: str, __: str) -> dict[str, str]:
            return {"t": value, "b": value}

        return references.digest(items, lookup, {}, b"k"), dict(references.parts(items, lookup, set(), b"k"))

    token = FOUND[0]
    assert digest((token,), "1") == digest((token,), "2")
    variable = Reference("Secret", token.name, "spec.env[0]", ("t",))
    assert digest((token, variable), "1") != digest((token, variable), "2")


def test_many_objects_share_one_digest_so_that_the_annotation_stays_small() -> None:
    many = tuple(Reference("Secret", f"{n:03}", "f") for n in range(400))
    found = references.parts(many, lambda _, name: {"k": name}, set(), b"key")
    assert len(found) == 65
    assert "another Secret or ConfigMap" in found


def digest(there: Json, items: Any = ENV, own: dict[str, bytes] | None = None, key: bytes = b"key") -> str:
    return references.digest(items, lambda _, name: there.get(name), own or {"token": b"t"}, key)


def test_a_value_that_is_used_changes_the_hash_and_no_other_does() -> None:
    before = digest({"s": {"k": "1"}, "c": {"a": "1"}})
    assert digest({"s": {"k": "1", "unused": "2"}, "c": {"a": "1"}}) == before
    assert digest({"s": {"k": "2"}, "c": {"a": "1"}}) != before
    assert digest({"s": {"k": "1"}, "c": {"a": "1", "b": "2"}}) != before
    assert digest({"s": {"k": "1"}}) != before


def test_the_own_secret_counts_too() -> None:
    assert digest({}, own={"token": b"a"}) != digest({}, own={"token": b"b"})


def test_an_optional_reference_counts_when_it_appears() -> None:
    assert digest({}, OPTIONAL) != digest({"s": {"k": "1"}}, OPTIONAL)


def test_without_the_key_nobody_can_guess_values_from_the_hash() -> None:
    there = {"s": {"k": "1"}, "c": {}}
    assert digest(there, key=b"one") != digest(there, key=b"two")


def test_only_data_is_digested() -> None:
    found = {
        "metadata": {"labels": {"a": "b"}},
        "data": {"k": "dmFsdWU="},
        "binaryData": {"b": "AAA="},
        "type": "x",
    }
    made = references.data_digests(found)
    assert set(made) == {"k", "b"}
    assert "dmFsdWU" not in str(made)
    assert made == references.data_digests({**found, "metadata": {"labels": {"a": "c"}}})
