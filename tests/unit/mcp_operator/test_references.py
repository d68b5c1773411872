"""References to Secrets and ConfigMaps: all are found, changes are noticed, values stay unknown."""

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
        Reference("Secret", "s-auth", "spec.auth.bearer.secretRef", ("t",)),
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
    assert references.missing(items, lambda _, name: there.get(name)) == gaps


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
