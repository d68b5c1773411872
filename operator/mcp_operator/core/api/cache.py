"""`spec.cache` of an MCPServer: the volume on which downloads outlive the pod."""

from typing import Annotated, Final

from pydantic import ConfigDict, Field

from mcp_operator.core.api.model import Model, rules

_KNOWN = (
    "!has(self.cache) || !has(self.cache.volumeName) || "
    "(has(self.volumes) && self.volumes.exists(v, v.name == self.cache.volumeName))"
)
_FREE = (
    "!has(self.cache) || !has(self.volumeMounts) || "
    "self.volumeMounts.all(m, !m.mountPath.matches('^/*cache(/.*)?$'))"
)
# On the whole spec, whose other fields they look at.
CACHE_RULES: Final = (
    (_KNOWN, "spec.cache.volumeName is not the name of a volume in spec.volumes: add it there"),
    (_FREE, "spec.volumeMounts: with spec.cache /cache is taken: mount the volume elsewhere"),
)


class Cache(Model):
    """Where downloaded packages outlive the pod, so that the next start is quick."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "has(self.claimName) != has(self.volumeName)",
                "spec.cache needs either claimName or volumeName: write one of the two",
            )
        )
    )

    claim_name: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """Name of a PersistentVolumeClaim in the same namespace. Default: none, `volumeName` is used."""
    volume_name: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """Name of a volume in `spec.volumes`, of any kind. Default: none, `claimName` is used."""
