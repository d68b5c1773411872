"""The pod of an MCPServer: the relay beside the server, one session, no Kubernetes rights."""

from typing import Any, Final

from mcp_operator.core import configuration, naming
from mcp_operator.core.api import RESTART_ANNOTATION, MCPServerSpec
from mcp_operator.core.configuration import Parts
from mcp_operator.manifests import identity, names, relay, security, server, volumes
from mcp_operator.manifests.identity import Owner
from mcp_operator.settings import Settings

Json = dict[str, Any]

# Time for: calls in flight to end, stdin to close, SIGTERM, SIGKILL; and some to spare.
GRACE_SECONDS: Final = 15


def template(owner: Owner, spec: MCPServerSpec, settings: Settings, restarted_at: str = "") -> Json:
    """The pod without its number: everything that, when changed, means another pod."""
    service = names.service(owner.name)
    meta = identity.metadata(owner, "")
    theirs = spec.pod_template.metadata
    meta["labels"] = {**theirs.labels, **meta["labels"]}
    meta["annotations"] = {**theirs.annotations, **meta["annotations"]}
    if restarted_at:
        meta["annotations"][RESTART_ANNOTATION] = restarted_at
    body: Json = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": security.pod(spec.pod_security_context),
        **_containers(owner, spec, settings),
        "volumes": volumes.pod(spec, service),
        **_placement(spec),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body}


def _containers(owner: Owner, spec: MCPServerSpec, settings: Settings) -> Json:
    """The relay beside the server; alone, and started again by the node, where the server is a remote one."""
    if spec.remote is not None:
        return {"restartPolicy": "Always", "containers": [relay.alone(owner, spec, settings)]}
    return {
        "restartPolicy": "Never",
        "initContainers": [relay.build(owner, spec, settings)],
        "containers": [server.build(spec, settings)],
    }


def build(
    blueprint: Json,
    owner: Owner,
    epoch: int,
    config_hash: str,
    config: Parts,
    entry: tuple[str, ...] | None = None,
) -> Json:
    """The pod with this number, from its template, marked with what it was made from.

    `entry` is what the image starts, if that is wanted.
    """
    meta, spec = blueprint["metadata"], blueprint["spec"]
    containers = [server.started(container, entry or ()) for container in spec["containers"]]
    return {
        **blueprint,
        "spec": {**spec, "containers": containers},
        "metadata": {
            **meta,
            "name": names.pod(owner.name, epoch),
            "labels": {**meta["labels"], naming.EPOCH: str(epoch)},
            "annotations": {
                **meta["annotations"],
                naming.CONFIG_HASH: config_hash,
                naming.CONFIG: configuration.write(config),
            },
        },
    }


def resources(body: Json) -> dict[str, Json]:
    """The resources of each container of a pod."""
    containers = (*body["spec"].get("initContainers", ()), *body["spec"]["containers"])
    return {container["name"]: container["resources"] for container in containers}


def _placement(spec: MCPServerSpec) -> Json:
    fields: Json = {
        "imagePullSecrets": list(spec.image_pull_secrets),
        "serviceAccountName": spec.service_account_name,
        "runtimeClassName": spec.runtime_class_name,
        "nodeSelector": dict(spec.node_selector),
        "tolerations": list(spec.tolerations),
        "affinity": spec.affinity,
        "topologySpreadConstraints": list(spec.topology_spread_constraints),
        "priorityClassName": spec.priority_class_name,
    }
    return {key: value for key, value in fields.items() if value}
