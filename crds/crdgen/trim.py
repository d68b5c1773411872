"""Cuts the OpenAPI document of a Kubernetes release down to the core types that an MCPServer has.

Kept: types, bounds, list types, and of each description the first sentence and those about defaults. Left
out: volume types that Kubernetes marks deprecated, fields behind feature gates that are off, and settings
for Windows, since the operator's pods run on Linux.
"""

import re
from typing import Any

Schema = dict[str, Any]

ROOTS = (
    "Affinity",
    "EnvFromSource",
    "EnvVar",
    "LocalObjectReference",
    "NetworkPolicyEgressRule",
    "NetworkPolicyPeer",
    "PodSecurityContext",
    "ResourceRequirements",
    "SecurityContext",
    "Toleration",
    "TopologySpreadConstraint",
    "Volume",
    "VolumeMount",
)

# Fields that could be written but would have no effect.
DROPPED = {
    "EnvVarSource": {"fileKeyRef"},
    "PodSecurityContext": {"windowsOptions"},
    "ResourceRequirements": {"claims"},
    "SecurityContext": {"windowsOptions"},
    "VolumeProjection": {"clusterTrustBundle", "podCertificate"},
}

_SELECTOR_OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist"]

# What the core API checks in code and its OpenAPI does not tell; the bounds also keep the CEL rules cheap.
ADDED: dict[str, dict[str, Schema]] = {
    "AppArmorProfile": {"type": {"enum": ["Localhost", "RuntimeDefault", "Unconfined"]}},
    "EnvVar": {"name": {"minLength": 1, "maxLength": 1024}},
    "IPBlock": {"cidr": {"minLength": 1, "maxLength": 43}},
    "LabelSelectorRequirement": {"operator": {"enum": _SELECTOR_OPERATORS}},
    "NetworkPolicyPort": {
        "endPort": {"minimum": 1, "maximum": 65_535},
        "protocol": {"enum": ["TCP", "UDP", "SCTP"]},
    },
    "NodeSelectorRequirement": {"operator": {"enum": [*_SELECTOR_OPERATORS, "Gt", "Lt"]}},
    "PodSecurityContext": {
        "fsGroupChangePolicy": {"enum": ["Always", "OnRootMismatch"]},
        "supplementalGroupsPolicy": {"enum": ["Merge", "Strict"]},
    },
    "SeccompProfile": {"type": {"enum": ["Localhost", "RuntimeDefault", "Unconfined"]}},
    "Toleration": {
        "effect": {"enum": ["", "NoSchedule", "PreferNoSchedule", "NoExecute"]},
        "operator": {"enum": ["", "Exists", "Equal", "Lt", "Gt"]},
    },
    "TopologySpreadConstraint": {
        "nodeAffinityPolicy": {"enum": ["Honor", "Ignore"]},
        "nodeTaintsPolicy": {"enum": ["Honor", "Ignore"]},
        "whenUnsatisfiable": {"enum": ["DoNotSchedule", "ScheduleAnyway"]},
    },
    "Volume": {"name": {"minLength": 1, "maxLength": 63}},
    "VolumeMount": {
        "mountPath": {"minLength": 1, "maxLength": 1024},
        "name": {"minLength": 1, "maxLength": 63},
    },
}

_NUMBER = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
_QUANTITY = rf"^(\+|-)?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_NUMBER}))?$"
_INT_OR_STRING: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
_STRINGS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}

# Types that a CRD spells otherwise than the built-in API.
REPLACED: dict[str, Schema] = {
    "IntOrString": {"description": "A number or a name.", **_INT_OR_STRING},
    "ObjectMeta": {
        "description": "Labels and annotations.",
        "type": "object",
        "properties": {
            "annotations": {"description": "Annotations to copy.", **_STRINGS},
            "labels": {"description": "Labels to copy.", **_STRINGS},
        },
    },
    "Quantity": {
        "description": "An amount, for example 250m, 1 or 512Mi.",
        "pattern": _QUANTITY,
        **_INT_OR_STRING,
    },
}

_GROUPS = ("io.k8s.api.core.v1.", "io.k8s.api.networking.v1.", "io.k8s.apimachinery.")
_KEPT = (
    "type",
    "format",
    "enum",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)


def short(name: str) -> str:
    """Give the last part of a definition's name or reference: `EnvVar`."""
    return re.split(r"[./]", name)[-1]


def brief(text: str) -> str:
    """Keep the first sentence and the sentences about defaults."""
    flat = re.sub(r"\s+", " ", text.split("\n\n", maxsplit=1)[0]).strip()
    sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z`\"])", flat)
    defaults = [s for s in sentences[1:] if re.search(r"\b[Dd]efault(s|ed)?\b", s)]
    return ". ".join(sentence.rstrip(".") for sentence in [sentences[0], *defaults]) + "."


def _deprecated(schema: Schema) -> bool:
    return "Deprecated:" in schema.get("description", "")


def _node(schema: Schema) -> Schema:
    trimmed: Schema = {}
    if "description" in schema:
        trimmed["description"] = brief(schema["description"])
    if "$ref" in schema:
        trimmed["$ref"] = short(schema["$ref"])
        return trimmed
    trimmed |= {key: schema[key] for key in _KEPT if key in schema}
    for key in ("items", "additionalProperties"):
        if key in schema:
            trimmed[key] = _node(schema[key])
    return trimmed


def _definition(name: str, schema: Schema) -> Schema:
    if name in REPLACED:
        return REPLACED[name]
    dropped = DROPPED.get(name, set())
    properties = {
        field: _node(value) | ADDED.get(name, {}).get(field, {})
        for field, value in schema.get("properties", {}).items()
        if field not in dropped and not _deprecated(value)
    }
    return _node(schema) | {"properties": properties}


def references(schema: Any) -> set[str]:
    """Collect the names of all definitions that a schema refers to."""
    if isinstance(schema, list):
        return set().union(*map(references, schema))
    if not isinstance(schema, dict):
        return set()
    own = {schema["$ref"]} if isinstance(schema.get("$ref"), str) else set()
    return own.union(*map(references, schema.values()))


def trim(swagger: Schema) -> Schema:
    """Make the content of core-types.json from a release's swagger.json."""
    known = {
        short(name): schema for name, schema in swagger["definitions"].items() if name.startswith(_GROUPS)
    }
    definitions: dict[str, Schema] = {}
    waiting = list(ROOTS)
    while waiting:
        name = waiting.pop()
        if name not in definitions:
            definitions[name] = _definition(name, known[name])
            waiting += references(definitions[name])
    return {"kubernetes": swagger["info"]["version"], "definitions": definitions}
