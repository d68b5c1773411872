"""docs/api.md: fields, conditions and reasons, made from the same models as the CRD."""

import ast
import enum
import inspect
import re
from collections.abc import Iterator
from typing import Any

from crdgen import crd
from crdgen.schema import Schema
from mcp_operator.core.api import conditions, identity
from mcp_relay_api.status import ErrorPhase

_CORE_DOCS = "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/"

_HEAD = f"""<!-- Generated from operator/mcp_operator/core/api by `make crd`: edit the models instead. -->
# API reference: `{identity.API_VERSION}`, kind `{identity.KIND}`

`kubectl get {identity.PLURAL}` (short `{identity.SHORT_NAME}`, category `{identity.CATEGORY}`); where another
product has a kind of this name, write `kubectl get {crd.NAME}`. `kubectl explain mcpserver.spec.session`
shows the texts of this page. A field that is not listed here is refused: `kubectl apply` validates strictly.

Types in *italics* are core types of Kubernetes with their usual fields ([Pod reference]({_CORE_DOCS})).
Left out of them is what would have no effect: volume types that Kubernetes marks deprecated, fields behind
feature gates that are off by default, and settings for Windows. Durations are whole seconds, sizes bytes.
"""

# Parts of the core types' schemas are not repeated here.
_CORE_FIELDS = {
    "imagePullSecrets": "LocalObjectReference",
    "env": "EnvVar",
    "envFrom": "EnvFromSource",
    "resources": "ResourceRequirements",
    "volumes": "Volume",
    "volumeMounts": "VolumeMount",
    "tolerations": "Toleration",
    "affinity": "Affinity",
    "topologySpreadConstraints": "TopologySpreadConstraint",
    "podSecurityContext": "PodSecurityContext",
    "securityContext": "SecurityContext",
    "egressRules": "NetworkPolicyEgressRule",
    "ingressFrom": "NetworkPolicyPeer",
}


def text() -> str:
    """Give docs/api.md."""
    root = crd.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    parts = [_HEAD]
    for name in ("spec", "status"):
        parts += [_object(path, schema) for path, schema in _objects(name, root["properties"][name])]
    parts += [_rules(root), _vocabulary()]
    return "\n".join(parts)


def _objects(path: str, schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Walk through the objects that are ours, outer ones first."""
    yield path, schema
    for name, field in schema["properties"].items():
        inner, suffix = (field["items"], "[]") if "items" in field else (field, "")
        if name not in _CORE_FIELDS and "properties" in inner:
            yield from _objects(f"{path}.{name}{suffix}", inner)


def _object(path: str, schema: Schema) -> str:
    rows = [_row(path, name, field) for name, field in schema["properties"].items()]
    table = "\n".join(["| Field | Type | Meaning |", "|---|---|---|", *rows])
    return f"## {path}\n\n{schema['description']}\n\n{table}\n"


def _row(path: str, name: str, field: Schema) -> str:
    cells = (f"`{name}`", _type(path, name, field), field["description"])
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _type(path: str, name: str, field: Schema) -> str:
    core = _CORE_FIELDS.get(name) if path.startswith("spec") else None
    if "items" in field:
        items = field["items"]
        return f"list of {f'*{core}*' if core else _scalar(items, 'objects')}"
    return f"*{core}*" if core else _scalar(field, f"[object](#{_anchor(path, name)})")


def _scalar(field: Schema, otherwise: str) -> str:
    if "additionalProperties" in field:
        return "map of strings"
    if "x-kubernetes-int-or-string" in field:
        return "quantity"
    return otherwise if field["type"] == "object" else str(field.get("format", field["type"]))


def _anchor(path: str, name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", f"{path}{name}".lower())


def _messages(schema: Any) -> Iterator[str]:
    """Walk through the messages of all CEL rules below a schema."""
    if isinstance(schema, dict):
        for validation in schema.get("x-kubernetes-validations", ()):
            yield validation["message"]
        for value in schema.values():
            yield from _messages(value)


def _rules(root: Schema) -> str:
    lines = [f"- {message}" for message in dict.fromkeys(_messages(root))]
    head = "Beside types and bounds the API server checks these; the message names the field and the cure.\n"
    return "\n".join(["## Rules\n", head, *lines, ""])


def _vocabulary() -> str:
    sections = (
        ("Phases", "`status.phase`", conditions.Phase),
        ("Conditions", "`status.conditions[].type`", conditions.ConditionType),
        ("Reasons", "`reason` of conditions, of `status.error` and of Events", conditions.Reason),
        ("Stages of an error", "`status.error.phase`", ErrorPhase),
        ("Recovery actions", "`status.recovery.action`", conditions.RecoveryAction),
    )
    return "\n".join(_section(*section) for section in sections)


def _section(title: str, where: str, values: type[enum.StrEnum]) -> str:
    rows = "\n".join(f"| `{value}` | {about} |" for value, about in _documented(values))
    return f"## {title}\n\n{where}.\n\n| Value | Meaning |\n|---|---|\n{rows}\n"


def _documented(values: type[enum.StrEnum]) -> Iterator[tuple[str, str]]:
    """Pair each value of an enum with the docstring below it ("" if there is none)."""
    module = ast.parse(inspect.getsource(values))
    body = [statement for definition in module.body for statement in getattr(definition, "body", ())]
    for statement, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.Assign):
            yield str(ast.literal_eval(statement.value)), _docstring(following)


def _docstring(statement: ast.stmt | None) -> str:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return re.sub(r"\s+", " ", str(statement.value.value)).strip()
    return ""
