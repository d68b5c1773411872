"""The kinds of objects that the operator reads and writes, and their paths at the API server."""

from dataclasses import dataclass
from typing import Final

from mcp_operator.core import naming
from mcp_operator.core.api import GROUP, PLURAL, VERSION


@dataclass(frozen=True)
class Kind:
    """One kind. `selector` and `fields` restrict what is listed and watched."""

    group: str
    version: str
    plural: str
    selector: str = ""
    fields: str = ""

    @property
    def prefix(self) -> str:
        """Path of the API group."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """Path of the collection, of one object, or of a part of it."""
        scope = ["namespaces", namespace] if namespace else []
        return "/".join([self.prefix, *(part for part in (*scope, self.plural, name, subresource) if part)])


SERVERS: Final = Kind(GROUP, VERSION, PLURAL)
PODS: Final = Kind("", "v1", "pods", selector=naming.SERVER)
SERVICES: Final = Kind("", "v1", "services", selector=naming.SERVER)
# The values of these are read by name only; what Helm and service accounts keep in Secrets is left out.
SECRETS: Final = Kind(
    "", "v1", "secrets", fields="type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token"
)
NETWORK_POLICIES: Final = Kind("networking.k8s.io", "v1", "networkpolicies", selector=naming.SERVER)
CONFIG_MAPS: Final = Kind("", "v1", "configmaps")
EVENTS: Final = Kind("events.k8s.io", "v1", "events")

WATCHED: Final = (SERVERS, PODS, SERVICES, SECRETS, NETWORK_POLICIES, CONFIG_MAPS)
