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
from mcp_relay_api.status import RelayStatus

MAX_KEYS: Final = 64
MAX_AGE_SECONDS: Final = 3600.0
"""For how long keys are used whose issuer cannot be asked whether they are still its own."""
OPENID: Final = "/.well-known/openid-configuration"
_OAUTH: Final = "/.well-known/oauth-authorization-server"
# Public members by type of key. Whatever else is there, private parts above all, stays behind.
_MEMBERS: Final = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
_COMMON: Final = ("kty", "kid", "alg", "use")
# Those of the algorithms that relays accept (RFC 7518 section 3.4, RFC 8037).
_CURVES: Final = {"EC": ("P-256", "P-384", "P-521"), "OKP": ("Ed25519",)}
_MARK_LENGTH: Final = 32


class KeySetError(ValueError):
    """What an issuer sends cannot be used; the message says what it is, and nothing of what it says."""


@dataclass(frozen=True)
class KeySet:
    """A set of keys as the relay gets it."""

    document: bytes
    problem: str = ""
    """Why there is no key in it."""

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
    if not isinstance(found, str) or not _is_place(found):
        raise KeySetError("it names no https URL of its keys: set spec.auth.jwt.jwksURI")
    return found


def _is_place(url: str) -> bool:
    """Whether it is an https URL with a host and without userinfo (RFC 3986, section 3.2)."""
    if not (url.isascii() and url.isprintable()) or " " in url or "\\" in url:
        return False
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises where it is no number
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname) and "@" not in parts.netloc


def named(issuer: str, jwks_uri: str | None) -> str:
    """The field that says whose keys they are, and what it says."""
    if jwks_uri is not None:
        return f"spec.auth.jwt.jwksURI: {jwks_uri}"
    return f"spec.auth.jwt.issuer: {issuer}"


def mark(issuer: str, jwks_uri: str | None) -> str:
    """By which a relay tells the place where its keys come from."""
    return hashlib.sha256(json.dumps([issuer, jwks_uri]).encode()).hexdigest()[:_MARK_LENGTH]


def key_set(document: Mapping[str, Any], source: str = "") -> KeySet:
    """The keys for signatures, each with an id, in an order of their own.

    A set without such keys, or with too many, has none: who publishes it publishes the others no more.

    Args:
        document: what an issuer sends.
        source: the `mark` of its place.

    Raises:
        KeySetError: it is no JWK Set.

    """
    keys = document.get("keys")
    if not isinstance(keys, list):
        raise KeySetError("it sends no JWK Set")
    found = list(_usable(keys))
    if not found:
        return empty(source, "it sends no public key with an id (kid) for signatures that can be used here")
    found.sort(key=lambda key: json.dumps(key, sort_keys=True))
    text = _text(found, source)
    if len(found) > MAX_KEYS or len(text) > paths.MAX_KEY_SET_BYTES:
        return empty(source, f"it sends more than {MAX_KEYS} keys or {paths.MAX_KEY_SET_BYTES} bytes of them")
    return KeySet(text)


def empty(source: str, problem: str = "") -> KeySet:
    """What a relay gets that is to let nobody in."""
    return KeySet(_text([], source), problem)


def _text(keys: list[dict[str, str]], source: str) -> bytes:
    members = {"keys": keys, **({"source": source} if source else {})}
    return json.dumps(members, sort_keys=True, separators=(",", ":")).encode()


def _usable(keys: list[Any]) -> Iterator[dict[str, str]]:
    for key in keys:
        kind = str(key.get("kty")) if isinstance(key, dict) else ""
        if kind not in _MEMBERS or not key.get("kid") or key.get("use", "sig") != "sig":
            continue
        if kind in _CURVES and key.get("crv") not in _CURVES[kind]:
            continue
        public = {name: key[name] for name in (*_COMMON, *_MEMBERS[kind]) if name in key}
        if all(isinstance(value, str) for value in public.values()):
            yield public


def outdated(seen: Observation) -> bool:
    """Whether the relay is to be given other keys than it has."""
    told = seen.relay.status
    if seen.keys is None or told is None or told.keys is None or not seen.relay.answering:
        return False
    if seen.keys.digest is not None:
        return told.keys.digest != seen.keys.digest
    # The place cannot be asked. Keys that came from it stay; those of another one are nobody's any more.
    return bool(seen.keys.problem) and told.keys.digest is not None and told.keys.source != seen.keys.source


def lacking(told: RelayStatus) -> bool:
    """Whether the relay needs keys and has none with which anybody could be let in."""
    return told.keys is not None and (told.keys.digest is None or told.keys.usable == 0)


def problem(seen: Observation) -> Failure | None:
    """Why the issuer's keys are not known, or not known any better than before, or of no use."""
    if seen.spec.auth.type is not AuthType.JWT or seen.keys is None:
        return None
    text = seen.keys.problem or _unusable(seen)
    return failure.failure(ErrorPhase.VALIDATION, Reason.KEYS_UNAVAILABLE, text, seen.now) if text else None


def _unusable(seen: Observation) -> str:
    told, jwt = seen.relay.status, seen.spec.auth.jwt
    if seen.keys is None or jwt is None or told is None or told.keys is None:
        return ""
    if seen.keys.refusal:
        return f"{named(jwt.issuer, jwt.jwks_uri)}: the relay does not take the keys: {seen.keys.refusal}"
    if told.keys.usable != 0 or told.keys.digest is None or told.keys.digest != seen.keys.digest:
        return ""
    return (
        f"{named(jwt.issuer, jwt.jwks_uri)}: none of its keys can verify a signature here: it takes RSA keys "
        "of 2048 bits and more, of the curves P-256, P-384 and P-521, and Ed25519"
    )
