"""Names of children: valid, stable and distinct for every legal name of an MCPServer.

A short and plain name stays readable. Every other one (long, with dots, or looking as if it were made by this
rule) is cut and gets a hash of the whole name, so that two names never meet.
"""

import hashlib
import re
from typing import Final

PREFIX: Final = "mcp-"
MAX_PLAIN: Final = 40
_HASH_LENGTH: Final = 8
_PLAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_HASHED: Final = re.compile(rf"-[0-9a-f]{{{_HASH_LENGTH}}}$")


def base(name: str) -> str:
    """A label value of at most 40 characters that stands for the MCPServer of this name."""
    if len(name) <= MAX_PLAIN and _PLAIN.fullmatch(name) and not _HASHED.search(name):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return f"{plain[: MAX_PLAIN - _HASH_LENGTH - 1].rstrip('-')}-{digest}"


def service(name: str) -> str:
    """Name of the Service, and of the Secret."""
    return PREFIX + base(name)


def pod(name: str, epoch: int) -> str:
    """Name of the pod with this number; at most 63 characters for up to 18 digits."""
    return f"{PREFIX}{base(name)}-{epoch}"


def url(name: str, namespace: str) -> str:
    """URL for clients in the cluster. The cluster's domain may be any, so it is left out."""
    return f"http://{service(name)}.{namespace}.svc/mcp"


def hosts(name: str, namespace: str) -> tuple[str, ...]:
    """Host names of the Service for clients in the cluster; `.*` stands for the cluster's own domain."""
    short = service(name)
    return short, f"{short}.{namespace}", f"{short}.{namespace}.svc", f"{short}.{namespace}.svc.*"
