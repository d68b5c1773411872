"""Names by which the API is known, and the keys that the operator puts on objects."""

from typing import Final

GROUP: Final = "mcp-session.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "MCPServer"
LIST_KIND: Final = "MCPServerList"
PLURAL: Final = "mcpservers"
SINGULAR: Final = "mcpserver"
SHORT_NAME: Final = "mcpsrv"
CATEGORY: Final = "mcp"

# Labels and annotations with these prefixes belong to the operator; a pod template must not set them.
OWN_PREFIX: Final = f"{GROUP}/"
RECOMMENDED_PREFIX: Final = "app.kubernetes.io/"

# Volumes that every pod has; a resource must not name its own so.
RESERVED_VOLUMES: Final = ("bridge", "state", "secrets", "home", "tmp", "package-cache")

# Annotation on an MCPServer; any new value restarts the server and resets its retries.
RESTART_ANNOTATION: Final = f"{GROUP}/restartedAt"
