"""What the relay is told of a remote server: where it is, how to speak to it, what to send along."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

AUTO, STREAMABLE, SSE = TRANSPORTS = ("Auto", "StreamableHTTP", "SSE")
_PORTS = {"http": 80, "https": 443}
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
# Written by the relay itself, or about one connection only.
RESERVED = frozenset(
    {
        "accept", "accept-encoding", "connection", "content-length", "content-type", "expect", "host",
        "keep-alive", "last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id",
        "te", "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip
_BACKOFF = (2.0, 4.0, 8.0)
_SLOW = 300.0


class TargetError(ValueError):
    """A description that makes no sense; the text names what and the cure."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port of a URL: whom the headers with the secrets are for."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """As the Host header spells it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"


@dataclass(frozen=True, slots=True)
class Header:
    """A header that every request gets: `prefix` and then what the file says."""

    name: str
    file: str
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """A remote server. `backoff`, `slow`: seconds, the last step repeats; `slow` 0: never."""

    origin: Origin
    path: str
    """Path and query."""
    transport: str = AUTO
    headers: tuple[Header, ...] = ()
    ca_file: str = ""
    """File with the CA certificates that may sign the server's, beside those of the system."""
    backoff: Sequence[float] = _BACKOFF
    slow: float = _SLOW
    """Seconds until a server that refused is asked again."""

    @property
    def url(self) -> str:
        """Origin and path; a query may hold a secret and is not shown."""
        return f"{self.origin}{self.path.partition('?')[0]}"


def read(text: str) -> Target:
    """The target out of the JSON that the operator writes.

    Raises:
        TargetError: it is none.

    """
    try:
        told = json.loads(text)
    except ValueError as error:
        raise TargetError(f"not JSON: {error}") from error
    if not isinstance(told, Mapping) or not isinstance(told.get("url"), str):
        raise TargetError("an object with a url is wanted")
    transport = told.get("transport", AUTO)
    if transport not in TRANSPORTS:
        raise TargetError(f"transport {transport!r} is not one of {', '.join(TRANSPORTS)}")
    origin, path = parse(told["url"])
    return Target(
        origin,
        path,
        transport,
        tuple(_header(item) for item in told.get("headers", ())),
        str(told.get("caFile", "")),
        tuple(_seconds(item) for item in told.get("backoffSeconds", ())) or _BACKOFF,
        _seconds(told.get("retryAfterErrorSeconds", _SLOW)),
    )


def parse(url: str) -> tuple[Origin, str]:
    """Origin and path of an absolute URL.

    Raises:
        TargetError: it is no http or https URL.

    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise TargetError(f"the URL cannot be read: {error}") from error
    if parts.scheme not in _PORTS or not parts.hostname:
        raise TargetError("the URL does not begin with http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise TargetError("the URL holds a user or a password: send them by a header from a Secret")
    return Origin(parts.scheme, parts.hostname, port or _PORTS[parts.scheme]), _path(parts)


def elsewhere(origin: Origin, path: str, location: str) -> tuple[Origin, str]:
    """Where a relative or absolute reference leads that stands at origin and path.

    Raises:
        TargetError: nowhere.

    """
    try:
        found = urljoin(f"{origin}{path}", location)
    except ValueError as error:
        raise TargetError(f"the URL cannot be read: {error}") from error
    return parse(found)


def _path(parts: SplitResult) -> str:
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not path.isascii() or not path.isprintable() or " " in path:
        raise TargetError("the URL's path has characters that must be percent-encoded")
    return path


def _header(item: Any) -> Header:
    if not isinstance(item, Mapping) or not isinstance(item.get("file"), str):
        raise TargetError("each of headers needs name and file")
    name, prefix = item.get("name"), item.get("prefix", "")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.lower() in RESERVED:
        raise TargetError(f"header {name!r} is no header's name, or is the relay's own")
    if not isinstance(prefix, str) or not printable(prefix):
        raise TargetError(f"the prefix of header {name!r} has characters that a header cannot have")
    return Header(name, item["file"], prefix)


def printable(value: str) -> bool:
    """Whether a header may have this value."""
    return all(" " <= character <= "~" or "\x80" <= character <= "\xff" for character in value)


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 86_400:
        raise TargetError(f"{value!r} are no seconds")
    return float(value)
