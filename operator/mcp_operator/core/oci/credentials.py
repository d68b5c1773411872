"""Which credentials of a pull Secret belong to an image; the rules are the kubelet's."""

import base64
import binascii
import fnmatch
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_operator.core.oci.reference import DOCKER_HUB, Reference

CONFIG_KEY: Final = ".dockerconfigjson"
OLD_CONFIG_KEY: Final = ".dockercfg"
_HUB_NAMES: Final = frozenset({"index.docker.io", "registry-1.docker.io", "docker.io"})


@dataclass(frozen=True)
class Credentials:
    """User and password for a registry."""

    user: str
    password: str

    @property
    def basic(self) -> str:
        """Value of an Authorization header."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()

    def __repr__(self) -> str:
        """Without the password: it must not get into a log."""
        return f"Credentials({self.user!r})"


def find(secrets: Iterable[Mapping[str, bytes]], image: Reference) -> tuple[Credentials, ...]:
    """Credentials for an image from the data of pull Secrets, the most fitting ones first."""
    found = [
        (len(path), credentials)
        for data in secrets
        for name, entry in _entries(data)
        for path in [_fitting(name, image)]
        for credentials in [_credentials(entry)]
        if path is not None and credentials is not None
    ]
    ranked = sorted(found, key=lambda item: -item[0])
    return tuple(dict.fromkeys(credentials for _, credentials in ranked))


def _entries(data: Mapping[str, bytes]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    document = _document(data.get(CONFIG_KEY)).get("auths")
    for entries in (document, _document(data.get(OLD_CONFIG_KEY))):
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            if isinstance(entry, dict):
                yield name, entry


def _document(text: bytes | None) -> dict[str, Any]:
    try:
        found = json.loads(text or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _fitting(name: str, image: Reference) -> str | None:
    """The path of an entry's name if the entry is for the image; None if it is not."""
    host, _, path = name.split("://", 1)[-1].partition("/")
    path = path.strip("/")
    if host in _HUB_NAMES:
        # `https://index.docker.io/v1/` is what `docker login` writes for Docker Hub.
        fits, path = image.host == DOCKER_HUB, "" if path in {"v1", "v2"} else path
    else:
        fits = _same_host(host, image.host)
    inside = not path or image.repository == path or image.repository.startswith(f"{path}/")
    return path if fits and inside else None


def _same_host(pattern: str, host: str) -> bool:
    wanted, given = pattern.lower().split("."), host.lower().split(".")
    return len(wanted) == len(given) and all(map(fnmatch.fnmatchcase, given, wanted))


def _credentials(entry: Mapping[str, Any]) -> Credentials | None:
    user, password = entry.get("username"), entry.get("password")
    if isinstance(user, str) and isinstance(password, str):
        return Credentials(user, password)
    try:
        user, colon, password = base64.b64decode(str(entry.get("auth", ""))).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    return Credentials(user, password) if colon else None
