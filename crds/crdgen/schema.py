"""From a pydantic model to a structural schema, as a CRD wants it."""

import re
from typing import Any

from crdgen import coretypes
from mcp_operator.core.api.model import Model

Schema = dict[str, Any]

_KEPT = (
    "type",
    "format",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "maxProperties",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-validations",
)


def structural(model: type[Model]) -> Schema:
    """Give the structural schema of a model: no references, no titles, core types spelled out."""
    document = model.model_json_schema(by_alias=True)
    return _convert(document, document.get("$defs", {}))


def without_defaults(schema: Schema) -> Schema:
    """Drop the defaults at every level: in a status what is missing is not known."""
    result = {key: value for key, value in schema.items() if key != "default"}
    if "items" in schema:
        result["items"] = without_defaults(schema["items"])
    if "properties" in schema:
        result["properties"] = {key: without_defaults(value) for key, value in schema["properties"].items()}
    return result


def _plain(node: Schema, definitions: dict[str, Schema]) -> Schema:
    """Follow the reference and drop the null branch of an optional field; the field's own keywords win."""
    branches = [branch for branch in node.get("anyOf", ()) if branch.get("type") != "null"]
    own = {key: value for key, value in node.items() if key not in {"anyOf", "$ref"}}
    if branches:
        return _plain(branches[0], definitions) | own
    if "$ref" in node:
        return _plain(definitions[node["$ref"].rsplit("/", 1)[-1]], definitions) | own
    return own


def _convert(node: Schema, definitions: dict[str, Schema]) -> Schema:
    node = _plain(node, definitions)
    result: Schema = {}
    if "description" in node:
        result["description"] = re.sub(r"\s+", " ", node["description"]).strip()
    if "x-core-type" in node:
        return result | _core(node)
    result |= {key: node[key] for key in _KEPT if key in node}
    if "properties" in node:
        result["properties"] = {
            name: _convert(value, definitions) for name, value in node["properties"].items()
        }
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            result[key] = _convert(node[key], definitions)
    return result | _default(node, result)


def _default(node: Schema, converted: Schema) -> Schema:
    """Declare a default that says something; an object's parts bring their own, so {} stands for them."""
    default = node.get("default")
    if converted.get("type") == "object":
        parts = converted.get("properties", {}).values()
        has_default = default is not None and any("default" in part for part in parts)
        return {"default": {}} if has_default else {}
    return {} if default in (None, [], {}) else {"default": default}


def _core(node: Schema) -> Schema:
    schema = coretypes.resolve(node["x-core-type"])
    keywords = {key: node[key] for key in _KEPT if key in node}
    if node.get("type") != "array":
        own = {key: value for key, value in schema.items() if key != "description"}
        return own | {key: value for key, value in keywords.items() if key not in own and key != "type"}
    return keywords | {"items": schema | node.get("x-core-items", {})}
