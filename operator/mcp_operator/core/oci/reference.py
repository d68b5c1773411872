"""Names of images, read as container runtimes read them."""

import re
from dataclasses import dataclass
from typing import Final

DOCKER_HUB: Final = "docker.io"
# The grammar of the distribution project's reference library.
_COMPONENT: Final = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_REPOSITORY: Final = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*")
_TAG: Final = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST: Final = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]{{1,5}})?")


class ImageNameError(Exception):
    """A text that names no image."""


@dataclass(frozen=True)
class Reference:
    """One image in one registry."""

    host: str
    """Host of the registry, with its port if it has one; Docker Hub is `docker.io`."""
    repository: str
    """Path of the repository, for example `library/python`."""
    version: str
    """A tag, or a digest `sha256:…`, which wins over a tag beside it."""

    @property
    def digest(self) -> str:
        """Of the one image that the name can ever mean; empty: a tag, which may move."""
        return self.version if self.version.startswith("sha256:") else ""

    @property
    def pinned(self) -> bool:
        """Whether the name can only ever mean one image."""
        return bool(self.digest)


def parse(text: str) -> Reference:
    """The image that a name means.

    Raises:
        ImageNameError: it is no name of an image.

    """
    name, _, digest = text.partition("@")
    host, path = _host(name)
    path, tag = _tag(path)
    if host == DOCKER_HUB and "/" not in path:
        path = f"library/{path}"
    well_formed = _HOST.fullmatch(host) and _REPOSITORY.fullmatch(path) and _TAG.fullmatch(tag)
    if not well_formed or (digest and not _DIGEST.fullmatch(digest)) or text.endswith("@"):
        raise ImageNameError(f"{text!r} is not the name of an image, as registry/name:tag: correct it")
    return Reference(host, path, digest or tag)


def _host(name: str) -> tuple[str, str]:
    first, slash, rest = name.partition("/")
    # The first part is a host if it could not be a folder of Docker Hub.
    if not slash or not ("." in first or ":" in first or first == "localhost" or first != first.lower()):
        return DOCKER_HUB, name
    return (DOCKER_HUB if first == "index.docker.io" else first), rest


def _tag(path: str) -> tuple[str, str]:
    before, colon, after = path.rpartition(":")
    return (before, after) if colon else (path, "latest")
