"""Who an object belongs to: labels, annotations, owner reference, and how they are recognised."""

from dataclasses import dataclass
from typing import Any, Final

from mcp_operator.core import naming
from mcp_operator.core.api import API_VERSION, KIND
from mcp_operator.manifests import names

Json = dict[str, Any]
MAX_LABEL: Final = 63


@dataclass(frozen=True)
class Owner:
    """The MCPServer that children belong to."""

    name: str
    namespace: str
    uid: str


def labels(owner: Owner) -> dict[str, str]:
    """Labels that every child carries."""
    base = names.base(owner.name)
    return {
        "app.kubernetes.io/name": "mcp-server",
        "app.kubernetes.io/instance": owner.name if len(owner.name) <= MAX_LABEL else base,
        "app.kubernetes.io/component": "mcp-server",
        "app.kubernetes.io/part-of": "mcp-session",
        "app.kubernetes.io/managed-by": naming.FIELD_MANAGER,
        naming.SERVER: base,
    }


def metadata(owner: Owner, name: str) -> Json:
    """The metadata that every child carries."""
    return {
        "name": name,
        "namespace": owner.namespace,
        "labels": labels(owner),
        "annotations": {naming.RESOURCE_NAME: owner.name},
        "ownerReferences": [
            {
                "apiVersion": API_VERSION,
                "kind": KIND,
                "name": owner.name,
                "uid": owner.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


def owned(found: Json, owner: Owner) -> bool:
    """Whether the object is this very MCPServer's child."""
    return owned_by(found, owner.uid)


def owned_by(found: Json, uid: str) -> bool:
    """Whether the object with this UID controls the other one."""
    return any(
        reference.get("controller") and reference.get("uid") == uid
        for reference in found.get("metadata", {}).get("ownerReferences", ())
    )


def owner_key(found: Json) -> tuple[str, str] | None:
    """Namespace and name of the MCPServer that controls the object; None if none does."""
    meta = found.get("metadata", {})
    for reference in meta.get("ownerReferences", ()):
        group = str(reference.get("apiVersion", "")).partition("/")[0]
        if reference.get("controller") and (group, reference.get("kind")) == (
            API_VERSION.partition("/")[0],
            KIND,
        ):
            return meta.get("namespace", ""), reference.get("name", "")
    return None
