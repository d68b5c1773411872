"""Who may come in: bearer token, Host, Origin and the kinds of content a client accepts."""

import hmac
from collections.abc import Iterable
from urllib.parse import urlsplit

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
JSON, SSE = "application/json", "text/event-stream"
DEFAULT_DOMAIN = "cluster.local"
_CURE = (
    "call the server by its Service's name, or have the name added to spec.session.allowedHosts "
    "(without a cluster: --allowed-host)"
)


def bearer_ok(header: bytes | None, expected: bytes) -> bool:
    """Compare an Authorization header with the token, in constant time; the scheme's case does not matter."""
    if header is None:
        return False
    scheme, _, given = header.partition(b" ")
    return hmac.compare_digest(given.strip(), expected) and scheme.lower() == b"bearer"


class HostRules:
    """Names a request may be addressed to, and may come from.

    Entries: a name (any port), `name:port`, `*.suffix`, or `*` for every name; in a pod also `name.*`, see
    `in_cluster`. Loopback names are always allowed: they are how `kubectl port-forward` arrives.
    """

    def __init__(self, names: Iterable[str]) -> None:
        entries = [*LOOPBACK, *(name.strip().lower() for name in names if name.strip())]
        self._exact = frozenset(entries)
        self._suffixes = tuple(entry[1:] for entry in entries if entry.startswith("*."))
        self._any = "*" in self._exact

    def allows(self, authority: str) -> bool:
        """Whether `host` or `host:port` is allowed."""
        name = authority.lower()
        bare = _without_port(name).rstrip(".")
        return (
            self._any
            or name in self._exact
            or bare in self._exact
            or bare.endswith(self._suffixes or ("\0",))
        )

    def refusal(self, host: bytes | None, origin: bytes | None) -> str | None:
        """Why a request may not pass, in words that name the cure; None when it may."""
        name = (host or b"").decode("latin-1")
        if not self.allows(name):
            return f"Host {name!r} is not allowed; {_CURE}"
        if origin is None:
            return None
        source = origin.decode("latin-1")
        if not self._origin_ok(source):
            return f"Origin {source!r} is not allowed; {_CURE}"
        return None

    def _origin_ok(self, origin: str) -> bool:
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and bool(parts.netloc) and self.allows(parts.netloc)


def in_cluster(names: Iterable[str], resolver: str) -> tuple[str, ...]:
    """The names with each `name.*` replaced by the name under the cluster's own domains.

    Not under any domain: whoever owns one could have `demo.default.svc.` under it point to this address, and
    that is what a page in a browser needs to get in (DNS rebinding).

    Args:
        names: entries of `HostRules`.
        resolver: the pod's resolv.conf, whose search list names the domain as `svc.DOMAIN`.

    """
    search = [line.split()[1:] for line in resolver.splitlines() if line.split()[:1] == ["search"]]
    listed = [entry.rstrip(".").lower() for entry in (search[-1] if search else ())]
    domains = [entry.removeprefix("svc.") for entry in listed if entry.startswith("svc.")]
    found: dict[str, None] = {}
    for name in names:
        if name.endswith(".*"):
            found |= dict.fromkeys(f"{name[:-2]}.{domain}" for domain in (*domains, DEFAULT_DOMAIN))
        else:
            found[name] = None
    return tuple(found)


def _without_port(authority: str) -> str:
    if authority.startswith("["):
        return authority.partition("]")[0] + "]"
    return authority.partition(":")[0]


def accepted(header: bytes | None) -> frozenset[str]:
    """Which of JSON and SSE an Accept header allows."""
    allowed: set[str] = set()
    for entry in (header or b"").decode("latin-1").lower().split(","):
        kind, *parameters = (part.strip() for part in entry.split(";"))
        if any(p in ("q=0", "q=0.0", "q=0.00", "q=0.000") for p in parameters):
            continue
        allowed.update({"*/*": (JSON, SSE), "application/*": (JSON,), "text/*": (SSE,)}.get(kind, (kind,)))
    return frozenset(allowed & {JSON, SSE})


def is_json(content_type: bytes | None) -> bool:
    """Whether a Content-Type names JSON."""
    return (content_type or b"").partition(b";")[0].strip().lower() == b"application/json"
