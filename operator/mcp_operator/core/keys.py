"""The public keys of a token issuer: where they are, and what of a JWK Set (RFC 7517) reaches the relay."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_operator.core import failure
from mcp_operator.core.api import AuthType, ErrorPhase, Reason
from mcp_operator.core.failure import Failure
from mcp_operator.core.observation import Observation
from mcp_relay_api import paths

MAX_KEYS: Final = 64
OPENID: Final = "/.well-known/openid-configuration"
_OAUTH: Final = "/.well-known/oauth-authorization-server"
# Public members by type of key. Whatever else is there, private parts above all, stays behind.
_MEMBERS: Final = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
_COMMON: Final = ("kty", "kid", "alg", "use")


class KeySetError(ValueError):
    """What an issuer sends cannot be used; the message says what it is, and nothing of what it says."""


@dataclass(frozen=True)
class KeySet:
    """A set of keys as the relay gets it."""

    document: bytes

    @property
    def digest(self) -> str:
        """By which operator and relay call it."""
        return hashlib.sha256(self.document).hexdigest()


def places(issuer: str) -> tuple[str, str]:
    """Where an issuer may tell about itself: OpenID Connect Discovery 1.0 section 4, RFC 8414 section 3.1."""
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    return f"{issuer.rstrip('/')}{OPENID}", f"{parts.scheme}://{parts.netloc}{_OAUTH}{path}"


def location(configuration: Mapping[str, Any], issuer: str) -> str:
    """Where the keys are, by what an issuer tells of itself.

    Raises:
        KeySetError: it tells of another issuer, or no place that can be trusted.

    """
    if configuration.get("issuer") != issuer:
        raise KeySetError("what it tells of itself is about another issuer: write that into the field")
    found = configuration.get("jwks_uri")
    if not isinstance(found, str) or not found.startswith("https://"):
        raise KeySetError("it names no https URL of its keys: set spec.auth.jwt.jwksURI")
    return found


def key_set(document: Mapping[str, Any]) -> KeySet:
    """The keys for signatures, each with an id, in an order of their own.

    Raises:
        KeySetError: there are none, or too many.

    """
    keys = document.get("keys")
    found = list(_usable(keys)) if isinstance(keys, list) else []
    if not found:
        raise KeySetError("it sends no public key with an id (kid) for signatures")
    found.sort(key=lambda key: json.dumps(key, sort_keys=True))
    text = json.dumps({"keys": found}, sort_keys=True, separators=(",", ":")).encode()
    if len(found) > MAX_KEYS or len(text) > paths.MAX_KEY_SET_BYTES:
        raise KeySetError(f"it sends more than {MAX_KEYS} keys or {paths.MAX_KEY_SET_BYTES} bytes of them")
    return KeySet(text)


def _usable(keys: list[Any]) -> Iterator[dict[str, str]]:
    for key in keys:
        members = _MEMBERS.get(str(key.get("kty"))) if isinstance(key, dict) else None
        if members is None or not key.get("kid") or key.get("use", "sig") != "sig":
            continue
        public = {name: key[name] for name in (*_COMMON, *members) if name in key}
        if all(isinstance(value, str) for value in public.values()):
            yield public


def outdated(seen: Observation) -> bool:
    """Whether the relay is to be given other keys than it has."""
    told = seen.relay.status
    if seen.keys is None or seen.keys.digest is None or told is None or told.keys is None:
        return False
    return seen.relay.answering and told.keys.digest != seen.keys.digest


def problem(seen: Observation) -> Failure | None:
    """Why the issuer's keys are not known, or not known any better than before."""
    if seen.spec.auth.type is not AuthType.JWT or seen.keys is None or not seen.keys.problem:
        return None
    return failure.failure(ErrorPhase.VALIDATION, Reason.KEYS_UNAVAILABLE, seen.keys.problem, seen.now)
