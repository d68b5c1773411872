"""How the OpenAPI document of a Kubernetes release is cut down."""

from typing import Any

from crdgen import conform, trim

CORE = "io.k8s.api.core.v1."


def _swagger(**definitions: dict[str, Any]) -> dict[str, Any]:
    empty = {CORE + name: {"type": "object", "properties": {}} for name in trim.ROOTS}
    return {"info": {"version": "v9"}, "definitions": empty | {CORE + k: v for k, v in definitions.items()}}


def test_a_description_keeps_its_first_sentence_and_what_it_says_about_defaults() -> None:
    text = (
        "Where it stands. More info: https://example.test/x. Must be short. Defaults to /x.\n\nA second part."
    )
    assert trim.brief(text) == "Where it stands. Defaults to /x."


def test_deprecated_and_switched_off_fields_are_left_out() -> None:
    swagger = _swagger(
        EnvVarSource={
            "type": "object",
            "properties": {
                "fileKeyRef": {"type": "string", "description": "Behind a gate."},
                "kept": {"type": "string", "description": "Kept.", "x-kubernetes-patch-strategy": "merge"},
                "old": {"type": "string", "description": "Old. Deprecated: gone."},
            },
        },
        EnvVar={
            "type": "object",
            "properties": {
                "valueFrom": {"$ref": f"#/definitions/{CORE}EnvVarSource", "description": "Whence."}
            },
        },
    )
    trimmed = trim.trim(swagger)["definitions"]
    assert trimmed["EnvVarSource"]["properties"] == {"kept": {"type": "string", "description": "Kept."}}
    assert trimmed["EnvVar"]["properties"]["valueFrom"] == {"$ref": "EnvVarSource", "description": "Whence."}


def test_what_nothing_refers_to_is_left_out() -> None:
    trimmed = trim.trim(_swagger(Lonely={"type": "object"}))["definitions"]
    assert set(trimmed) == set(trim.ROOTS)


def test_a_strict_schema_refuses_unknown_fields_at_every_level() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    schema = conform.strict({"type": "object", "properties": {"list": {"type": "array", "items": inner}}})
    assert schema["additionalProperties"] is False
    assert schema["properties"]["list"]["items"]["additionalProperties"] is False
