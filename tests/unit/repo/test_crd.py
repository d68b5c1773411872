"""The CRD, the chart's copy and docs/api.md are what the models say, and what the API server accepts."""

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # comes with mcp, without stubs
import pytest
import yaml

from crdgen import conform, coretypes, crd, schema
from crdgen.__main__ import outputs
from mcp_operator.core.api import MCPServerSpec, MCPServerStatus
from mcp_relay_api.status import MAX_DESCRIPTION, MAX_STDERR_TAIL, MAX_TOOLS, ErrorPhase

ROOT = Path(__file__).resolve().parents[3]
# kubectl's client-side apply keeps the whole object in one annotation of at most this many bytes.
ANNOTATION_LIMIT = 262_144

Schema = dict[str, Any]

VALID: dict[str, Any] = {"spec": {"command": ["uvx", "mcp-server-time"]}}


@pytest.fixture(scope="module")
def root() -> Schema:
    version: Schema = crd.definition()["spec"]["versions"][0]
    openapi: Schema = version["schema"]["openAPIV3Schema"]
    return openapi


def _nodes(node: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every schema below a node, with the path of the field."""
    yield path, node
    for name, value in node.get("properties", {}).items():
        yield from _nodes(value, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield from _nodes(node[key], f"{path}[]")


def _at(node: Schema, path: str) -> Schema:
    for name in path.split("."):
        node = node["properties"][name]
    return node


def test_the_committed_files_are_what_the_models_give() -> None:
    for path, content in outputs().items():
        assert (ROOT / path).read_text(encoding="utf-8") == content, f"{path}: run `make crd`"


def test_the_definition_fits_into_the_annotation_of_kubectl_apply() -> None:
    assert len(json.dumps(crd.definition())) < ANNOTATION_LIMIT * 0.8


def test_every_field_is_described_in_whole_sentences(root: Schema) -> None:
    fields = [
        (path, node)
        for path, node in _nodes(root)
        if path and not path.endswith("[]") and path != ".metadata"
    ]
    assert [path for path, node in fields if not node.get("description", "").endswith((".", ")"))] == []
    assert len(fields) > 300


def test_a_declared_default_is_told_in_the_description(root: Schema) -> None:
    told = {True: "true", False: "false"}
    untold = [
        path
        for path, node in _nodes(root)
        if node.get("default") not in (None, {})
        and f"{told.get(node['default']) if isinstance(node['default'], bool) else node['default']}"
        not in node["description"].split("Default", 1)[-1]
    ]
    assert untold == []


def test_a_field_in_seconds_or_bytes_names_its_unit(root: Schema) -> None:
    for path, node in _nodes(_at(root, "spec")):
        for suffix in ("Seconds", "Bytes"):
            if path.startswith((".session", ".recovery")) and path.endswith(suffix):
                assert node["description"].startswith(suffix), path


def test_nothing_unknown_is_kept_and_every_object_is_spelled_out(root: Schema) -> None:
    for path, node in _nodes(root):
        assert "x-kubernetes-preserve-unknown-fields" not in node, path
        assert "$ref" not in node, path
        if node.get("type") == "object" and path != ".metadata":
            assert ("properties" in node) != ("additionalProperties" in node), path


def test_every_list_of_ours_is_bounded_and_says_how_it_merges(root: Schema) -> None:
    for name in ("spec", "status"):
        for field, node in root["properties"][name]["properties"].items():
            if node["type"] == "array":
                assert "maxItems" in node, field
                assert "x-kubernetes-list-type" in node, field


def test_map_lists_have_required_keys(root: Schema) -> None:
    for path, node in _nodes(root):
        for key in node.get("x-kubernetes-list-map-keys", ()):
            items = node["items"]
            assert key in items.get("required", ()) or "default" in items["properties"][key], path


def test_no_rule_asks_whether_a_field_is_set_that_the_api_server_sets_itself(root: Schema) -> None:
    for path, node in _nodes(root):
        if node.get("default") == {}:
            continue  # judged by itself, too, before its fields are set: see below
        for rule in node.get("x-kubernetes-validations", ()):
            for name in re.findall(r"!has\(self\.(\w+)\)", rule["rule"]):
                assert "default" not in node["properties"][name], (path, name)


def test_rules_run_over_bounded_parts_only(root: Schema) -> None:
    for path, node in _nodes(root):
        if "items" in node and "x-kubernetes-validations" in node["items"]:
            assert "maxItems" in node, path


def test_every_rule_names_its_field_and_a_cure(root: Schema) -> None:
    validations = [rule for _, node in _nodes(root) for rule in node.get("x-kubernetes-validations", ())]
    assert len(validations) >= 7
    for rule in validations:
        assert rule["message"].startswith("spec."), rule
        assert ": " in rule["message"], rule
        assert "\n" not in rule["rule"] + rule["message"]


def test_a_rule_about_an_object_that_is_empty_by_default_asks_whether_a_field_is_there(root: Schema) -> None:
    """The API server judges the default {} before it fills in fields, and refuses what fails then."""
    for path, node in _nodes(root):
        for rule in node.get("x-kubernetes-validations", ()) if node.get("default") == {} else ():
            used = set(re.findall(r"self\.(\w+)", rule["rule"]))
            asked = set(re.findall(r"has\(self\.(\w+)\)", rule["rule"]))
            assert used == asked, f"{path}: {rule['rule']}"


def test_a_missing_command_is_left_to_the_rule_that_explains_it(root: Schema) -> None:
    assert "spec" not in root.get("required", ())
    assert "command" not in _at(root, "spec").get("required", ())
    assert "minItems" not in _at(root, "spec.command")
    (rule,) = root["x-kubernetes-validations"]
    assert rule["fieldPath"] == ".spec.command"
    assert "spec.command is required without spec.image" in rule["message"]


def test_later_fields_are_not_accepted_yet(root: Schema) -> None:
    spec = _at(root, "spec")
    assert set(spec["properties"]).isdisjoint({"protocol"})
    assert _at(spec, "auth.type")["enum"] == ["Bearer", "JWT", "None"]


def test_status_is_bounded_as_the_relay_reports(root: Schema) -> None:
    status = _at(root, "status")
    assert status["properties"]["tools"]["maxItems"] == MAX_TOOLS
    assert _at(status["properties"]["tools"]["items"], "description")["maxLength"] == MAX_DESCRIPTION
    assert _at(status, "error.stderrTail")["maxLength"] == MAX_STDERR_TAIL
    assert _at(status, "error.phase")["enum"] == [phase.value for phase in ErrorPhase]
    assert all("default" not in node for _, node in _nodes(status))


def test_printer_columns_and_names_are_as_promised() -> None:
    definition = crd.definition()["spec"]
    columns = definition["versions"][0]["additionalPrinterColumns"]
    assert [c["name"] for c in columns if not c.get("priority")] == [
        "Ready",
        "Phase",
        "Tools",
        "Restarts",
        "URL",
        "Age",
    ]
    assert [c["name"] for c in columns if c.get("priority") == 1] == ["Image", "Reason", "Message"]
    assert definition["names"]["shortNames"] == ["mcpsrv"]
    assert definition["names"]["categories"] == ["mcp"]


def test_printer_columns_read_fields_that_exist(root: Schema) -> None:
    for column in crd.COLUMNS:
        path = column["jsonPath"].split("[")[0].strip(".")
        if not path.startswith("metadata"):
            assert _at(root, path)


def test_defaults_of_the_definition_are_those_of_the_models(root: Schema) -> None:
    def fill(node: Schema, value: Any) -> Any:
        if "properties" in node and isinstance(value, dict):
            filled = {
                name: copy.deepcopy(part["default"])
                for name, part in node["properties"].items()
                if "default" in part
            } | value
            return {name: fill(node["properties"][name], part) for name, part in filled.items()}
        return value

    filled = fill(_at(root, "spec"), VALID["spec"])
    assert MCPServerSpec.parse(filled) == MCPServerSpec.parse(VALID["spec"])


@pytest.mark.parametrize(
    "spec",
    [
        {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
        {"volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1Gi", "medium": "Memory"}}]},
        {"resources": {"limits": {"cpu": 1, "memory": "64Mi"}}},
        {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]},
        {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}},
        {"securityContext": {"capabilities": {"drop": ["ALL"]}}},
        {"session": {"callTimeoutSeconds": 86400}, "recovery": {"maxRetries": 0}},
        {"session": {"protocol": "Modern", "clientCapabilities": ["sampling", "elicitation", "roots"]}},
    ],
    ids="+".join,
)
def test_the_strict_schema_takes_usual_pod_settings(spec: dict[str, Any], root: Schema) -> None:
    jsonschema.validate({"spec": VALID["spec"] | spec}, conform.strict(root))


@pytest.mark.parametrize(
    "spec",
    [
        {"comand": ["a"]},
        {"session": {"callTimeout": 3}},
        {"session": {"protocol": "modern"}},
        {"session": {"clientCapabilities": ["mind-reading"]}},
        {"volumes": [{"name": "x", "emptyDir": {"foo": 1}}]},
        {"securityContext": {"windowsOptions": {}}},
        {"resources": {"claims": []}},
        {"imagePullPolicy": "Sometimes"},
        {"recovery": {"backoffSeconds": [0]}},
        {"recovery": {"backoffSeconds": []}},
        {"recovery": {"maxRetries": 11}},
        {"tolerations": [{"effect": "Never"}]},
        {"command": "uvx mcp-server-time"},
        {"args": ["a"] * 1025},
    ],
    ids=str,
)
def test_the_strict_schema_refuses(spec: dict[str, Any], root: Schema) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"spec": VALID["spec"] | spec}, conform.strict(root))


def test_models_and_definition_have_the_same_fields(root: Schema) -> None:
    for name, model in (("spec", MCPServerSpec), ("status", MCPServerStatus)):
        aliases = {str(field.alias) for field in model.model_fields.values()}
        assert set(_at(root, name)["properties"]) == aliases


def test_core_types_are_written_out_without_losing_the_fields_own_words() -> None:
    volume = coretypes.resolve("Volume")
    assert _at(volume, "configMap.items")["items"]["required"] == ["key", "path"]
    assert "gitRepo" not in volume["properties"]
    assert _at(volume, "secret")["description"].startswith("secret represents")


def test_defaults_can_be_taken_out_at_every_level() -> None:
    nested = {
        "type": "object",
        "properties": {"a": {"default": 1, "items": {"default": 2, "type": "string"}}},
    }
    assert schema.without_defaults(nested) == {
        "type": "object",
        "properties": {"a": {"items": {"type": "string"}}},
    }


def test_the_written_definition_reads_back_as_it_was() -> None:
    assert yaml.safe_load(crd.text()) == crd.definition()


def _messages(node: object) -> Iterator[str]:
    """What the rules anywhere below a node say."""
    if isinstance(node, dict):
        yield from (rule["message"] for rule in node.get("x-kubernetes-validations", ()))
        node = list(node.values())
    if isinstance(node, list):
        for value in node:
            yield from _messages(value)


def test_every_rule_of_the_models_is_in_the_definition(root: Schema) -> None:
    wanted = set(_messages(MCPServerSpec.model_json_schema(by_alias=True)))
    assert "spec.resources: a request is above its limit: lower the one or raise the other" in wanted
    assert wanted <= set(_messages(root))
