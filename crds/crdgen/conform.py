"""Strict JSON schemas that check the chart's rendered objects and the examples without a cluster."""

from typing import Any

from crdgen import crd
from crdgen.trim import references, short

Schema = dict[str, Any]

# Kinds that the chart renders, as kubeconform names their files: kind, group's first part, version.
KINDS = {
    "clusterrole-rbac-v1": "io.k8s.api.rbac.v1.ClusterRole",
    "clusterrolebinding-rbac-v1": "io.k8s.api.rbac.v1.ClusterRoleBinding",
    "customresourcedefinition-apiextensions-v1": (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
    ),
    "deployment-apps-v1": "io.k8s.api.apps.v1.Deployment",
    "role-rbac-v1": "io.k8s.api.rbac.v1.Role",
    "rolebinding-rbac-v1": "io.k8s.api.rbac.v1.RoleBinding",
    "service-v1": "io.k8s.api.core.v1.Service",
    "serviceaccount-v1": "io.k8s.api.core.v1.ServiceAccount",
}

_INT_OR_STRING: Schema = {"type": ["integer", "string"]}
_LOOSE = {"IntOrString": _INT_OR_STRING, "Quantity": {"type": ["number", "string"]}}
_ANYTHING = {
    "JSON",
    "JSONSchemaPropsOrArray",
    "JSONSchemaPropsOrBool",
    "JSONSchemaPropsOrStringArray",
    "FieldsV1",
}

_SERVICE_MONITOR: Schema = {
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "monitoring.coreos.com/v1"},
        "kind": {"const": "ServiceMonitor"},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "additionalProperties": False,
            "required": ["selector", "endpoints"],
            "properties": {
                "selector": {"type": "object", "required": ["matchLabels"]},
                "endpoints": {"type": "array", "items": {"type": "object", "required": ["port"]}},
            },
        },
    },
}


def strict(schema: Schema) -> Schema:
    """Refuse unknown fields at every level, as the API server does in strict validation."""
    result: Schema = {}
    for key, value in schema.items():
        if key == "$ref":
            result[key] = f"#/definitions/{short(value)}"
        elif key in {"items", "additionalProperties"} and isinstance(value, dict):
            result[key] = strict(value)
        elif key == "properties":
            result[key] = {name: strict(field) for name, field in value.items()}
        elif key in {"type", "required", "enum", "pattern", "anyOf"} or key.startswith(("min", "max")):
            result[key] = value
    if "properties" in result:
        result.setdefault("additionalProperties", False)
    return result


def _definition(name: str, schema: Schema) -> Schema:
    if name in _ANYTHING:
        return {}
    return _LOOSE.get(name) or strict(schema)


def built_in(swagger: Schema) -> dict[str, Schema]:
    """Cut a release's swagger.json down to the strict definitions of the chart's kinds, by short name."""
    definitions: dict[str, Schema] = {}
    waiting = [f"/{name}" for name in KINDS.values()]
    while waiting:
        full = waiting.pop().rpartition("/")[2]
        if short(full) not in definitions:
            source = swagger["definitions"][full]
            definitions[short(full)] = _definition(short(full), source)
            waiting += references(source)
    return definitions


def schemas(definitions: dict[str, Schema]) -> dict[str, Schema]:
    """Give the schema of each kind by the name under which kubeconform looks for it."""
    files: dict[str, Schema] = {
        name: {"$ref": f"#/definitions/{short(full)}", "definitions": definitions}
        for name, full in KINDS.items()
    }
    version = crd.definition()["spec"]["versions"][0]
    resource = strict(version["schema"]["openAPIV3Schema"])
    # Only the type is told of metadata; the built-in definition says what may be in it.
    resource["properties"]["metadata"] = {"$ref": "#/definitions/ObjectMeta"}
    files[f"mcpserver-mcp-session-{version['name']}"] = resource | {"definitions": definitions}
    files["servicemonitor-monitoring-v1"] = _SERVICE_MONITOR
    return files
