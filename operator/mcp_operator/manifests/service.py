"""The Service that clients use: port 80 of a stable name, to the relay of the pod that is ready."""

from mcp_operator.core import naming
from mcp_operator.manifests import identity, names
from mcp_operator.manifests.identity import Json, Owner
from mcp_relay_api import paths

PORT = 80
PORT_NAME = "mcp"


def build(owner: Owner) -> Json:
    """The Service of an MCPServer."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": identity.metadata(owner, names.service(owner.name)),
        "spec": {
            "type": "ClusterIP",
            "selector": {naming.SERVER: names.base(owner.name)},
            "ports": [{"name": PORT_NAME, "port": PORT, "targetPort": paths.MCP_PORT, "protocol": "TCP"}],
        },
    }
