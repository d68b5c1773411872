"""The schemas of core Kubernetes types, from the trimmed copy beside this file."""

import functools
import json
from pathlib import Path
from typing import Any

Schema = dict[str, Any]

FILE = Path(__file__).with_name("core-types.json")


@functools.cache
def _definitions() -> dict[str, Schema]:
    document: dict[str, dict[str, Schema]] = json.loads(FILE.read_text(encoding="utf-8"))
    return document["definitions"]


def _inline(schema: Schema) -> Schema:
    if "$ref" in schema:
        # A field says more about its use than the type does about itself.
        target = _inline(_definitions()[schema["$ref"]])
        return target | ({"description": schema["description"]} if "description" in schema else {})
    result = dict(schema)
    for key in ("items", "additionalProperties"):
        if key in schema:
            result[key] = _inline(schema[key])
    if "properties" in schema:
        result["properties"] = {name: _inline(value) for name, value in schema["properties"].items()}
    return result


def resolve(kind: str) -> Schema:
    """Give the whole schema of a core type, references written out. Raises KeyError for an unknown one."""
    return _inline(_definitions()[kind])
