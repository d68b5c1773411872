"""The kinds of objects that the command line reads and writes, and their paths at the API server."""

from dataclasses import dataclass
from typing import Final

from mcp_operator.core.api import GROUP, KIND, PLURAL, VERSION


@dataclass(frozen=True)
class Kind:
    """One kind. `title` is what people call it."""

    group: str
    version: str
    plural: str
    title: str

    @property
    def prefix(self) -> str:
        """Path of the API group."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Path of the collection, of one object, or of a part of it. No namespace: all of them."""
        scope = ["namespaces", namespace] if namespace else []
        return "/".join([self.prefix, *scope, *(part for part in (self.plural, name, subresource) if part)])


SERVERS: Final = Kind(GROUP, VERSION, PLURAL, KIND)
PODS: Final = Kind("", "v1", "pods", "Pod")
SECRETS: Final = Kind("", "v1", "secrets", "Secret")
CONFIG_MAPS: Final = Kind("", "v1", "configmaps", "ConfigMap")
EVENTS: Final = Kind("events.k8s.io", "v1", "events", "Event")

BY_TITLE: Final = {kind.title: kind for kind in (SERVERS, SECRETS, CONFIG_MAPS)}
