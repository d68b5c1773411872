"""The CustomResourceDefinition around the schemas, and how it is written."""

from typing import Any

import yaml

from crdgen.schema import Schema, structural, without_defaults
from mcp_operator.core.api import identity
from mcp_operator.core.api.spec import ROOT_RULES, MCPServerSpec
from mcp_operator.core.api.status import MCPServerStatus

NAME = f"{identity.PLURAL}.{identity.GROUP}"
_HEAD = "# Generated from operator/mcp_operator/core/api by `make crd`: edit the models, not this file.\n"


def _column(name: str, path: str, about: str, kind: str = "string", *, wide: bool = False) -> dict[str, Any]:
    column: dict[str, Any] = {"name": name, "type": kind, "description": about, "jsonPath": path}
    return column | ({"priority": 1} if wide else {})


def _ready(field: str) -> str:
    return f'.status.conditions[?(@.type=="Ready")].{field}'


COLUMNS = [
    _column("Ready", _ready("status"), "Whether the MCP session is initialised now."),
    _column("Phase", ".status.phase", "State in one word."),
    _column("Tools", ".status.toolCount", "Number of the server's tools.", "integer"),
    _column("Restarts", ".status.recovery.restarts", "How often the pod was replaced.", "integer"),
    _column("URL", ".status.address.url", "MCP endpoint inside the cluster."),
    _column("Age", ".metadata.creationTimestamp", "Time since the resource was created.", "date"),
    _column("Image", ".status.image", "Image that the server runs from.", wide=True),
    _column("Reason", _ready("reason"), "Why it is ready or not, in one word.", wide=True),
    _column("Message", _ready("message"), "Why it is ready or not.", wide=True),
]


def _root() -> Schema:
    return {
        "description": "A stdio MCP server that runs in a pod of its own and is served over Streamable HTTP. "
        f"Full name for kubectl: {NAME}.",
        "type": "object",
        "x-kubernetes-validations": list(ROOT_RULES),
        "properties": {
            "apiVersion": {"description": f"Always {identity.API_VERSION}.", "type": "string"},
            "kind": {"description": f"Always {identity.KIND}.", "type": "string"},
            "metadata": {"type": "object"},
            "spec": structural(MCPServerSpec),
            "status": without_defaults(structural(MCPServerStatus)),
        },
    }


def definition() -> dict[str, Any]:
    """Give the CustomResourceDefinition as a document."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        # Helm must not take the CRD away on uninstall: all resources would go with it.
        "metadata": {"name": NAME, "annotations": {"helm.sh/resource-policy": "keep"}},
        "spec": {
            "group": identity.GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": identity.KIND,
                "listKind": identity.LIST_KIND,
                "plural": identity.PLURAL,
                "singular": identity.SINGULAR,
                "shortNames": [identity.SHORT_NAME],
                "categories": [identity.CATEGORY],
            },
            "versions": [
                {
                    "name": identity.VERSION,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": COLUMNS,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": _root()},
                }
            ],
        },
    }


class _Dumper(yaml.SafeDumper):
    """Writes shared parts in full: anchors are hard to read in a diff."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def text() -> str:
    """Give the CRD as YAML."""
    return _HEAD + yaml.dump(definition(), Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)
