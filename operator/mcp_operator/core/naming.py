"""Labels, annotations and container names that decisions and manifests share."""

from typing import Final

from mcp_operator.core.api import GROUP

# Selects the children of one MCPServer; its value is the children's base name, a valid label value.
SERVER: Final = f"{GROUP}/server"
# Number of the pod, counted up with each replacement.
EPOCH: Final = f"{GROUP}/epoch"
# Hash of everything that makes the pod what it is; another one means another pod.
CONFIG_HASH: Final = f"{GROUP}/config-hash"
# The parts of that, each with its digest, so that a change can be told by its name.
CONFIG: Final = f"{GROUP}/config"
# Full name of the MCPServer, which may be longer than a label value.
RESOURCE_NAME: Final = f"{GROUP}/name"

# Namespace and name of an object.
Key = tuple[str, str]

SERVER_CONTAINER: Final = "server"
RELAY_CONTAINER: Final = "relay"
FIELD_MANAGER: Final = "mcpserver-operator"
