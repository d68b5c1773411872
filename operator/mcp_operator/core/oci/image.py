"""What an image starts, from the documents that registries keep about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

INDEXES: Final = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFESTS: Final = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_SYSTEM: Final = "linux"


class DocumentError(Exception):
    """A document that is not what it should be; the message says what is wrong with it."""


@dataclass(frozen=True)
class EntryPoint:
    """What an image starts of itself."""

    entrypoint: tuple[str, ...]
    cmd: tuple[str, ...]

    def before(self, args: Sequence[str]) -> tuple[str, ...]:
        """What stands before `spec.args`, which take the place of the image's CMD, as in a pod."""
        return self.entrypoint if args else (*self.entrypoint, *self.cmd)


def is_index(document: Mapping[str, Any], media_type: str) -> bool:
    """Whether a document lists an image's variants, instead of being about one of them."""
    return (document.get("mediaType") or media_type) in INDEXES or isinstance(document.get("manifests"), list)


def variant(index: Mapping[str, Any], architecture: str) -> str:
    """Digest of the manifest for an architecture, else of the first for Linux: programs have one name in all.

    Raises:
        DocumentError: there is none.

    """
    usable = [
        (platform.get("architecture"), entry["digest"])
        for entry in index.get("manifests") or ()
        if isinstance(entry, dict) and isinstance(entry.get("digest"), str)
        for platform in [entry.get("platform") or {}]
        if isinstance(platform, dict) and platform.get("os") == _SYSTEM
    ]
    if not usable:
        raise DocumentError("the image has no variant for Linux")
    return str(dict(reversed(usable)).get(architecture, usable[0][1]))


def config_digest(manifest: Mapping[str, Any]) -> str:
    """Digest of the configuration that a manifest names.

    Raises:
        DocumentError: it names none.

    """
    config = manifest.get("config")
    digest = config.get("digest") if isinstance(config, dict) else None
    if not isinstance(digest, str):
        raise DocumentError("its manifest names no configuration")
    return digest


def entry_point(config: Mapping[str, Any]) -> EntryPoint:
    """What the image starts.

    Raises:
        DocumentError: the configuration is not of the form that the OCI image specification gives.

    """
    inner = config.get("config") or {}
    if not isinstance(inner, dict):
        raise DocumentError("its configuration cannot be read")
    return EntryPoint(_words(inner.get("Entrypoint")), _words(inner.get("Cmd")))


def _words(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise DocumentError("its entry point is no list of texts")
    return tuple(value)
