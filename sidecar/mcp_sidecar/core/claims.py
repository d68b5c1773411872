"""What a signed token says, held against what the server asks for.

The rules are those of RFC 7519 (section 4.1, the registered claims) and of RFC 8725 (its best practices): the
algorithm comes from a list, never from the token alone; issuer, audience and time are always checked. No
clock: the time is an argument.
"""

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Those with two keys, of which the relay has the public one: nobody can sign with what verifies."""
CLOCK_SKEW_SECONDS = 30.0
MAX_SUBJECT = 512
_LAST = float(2**53)  # later than any clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Which tokens are good."""

    issuer: str
    audiences: tuple[str, ...]
    """One of them must be in the token."""
    algorithms: tuple[str, ...] = ALGORITHMS
    clock_skew: float = CLOCK_SKEW_SECONDS
    """Seconds by which the issuer's clock and this one may differ."""
    subject_claim: str = "sub"
    """The claim that says who somebody is."""
    subjects: tuple[str, ...] = ()
    """Globs of those who may come in; (): all whom the issuer knows."""
    resource: str = ""
    """URL by which clients know this server; "": the one by which they ask."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who somebody is, and until when that is so (seconds since the Unix epoch, clock skew included)."""

    subject: str
    expires: float


class TokenError(Exception):
    """A token that opens nothing; the message is for its holder and has nothing of what the token says."""


class StrangerError(Exception):
    """A good token of somebody who may not come in."""


def identify(claims: Mapping[str, Any], rules: Rules, now: float) -> Identity:
    """Who the holder of a token with these claims is; its signature was verified before.

    Raises:
        TokenError: it is not good, or not good here or now.
        StrangerError: it is, but its holder may not come in.

    """
    if claims.get("iss") != rules.issuer:
        raise TokenError("The token is of another issuer")
    if not _audience(claims.get("aud")) & set(rules.audiences):
        raise TokenError("The token is for another audience")
    expires = _expiry(claims, rules.clock_skew, now)
    name = claims.get(rules.subject_claim)
    if not isinstance(name, str) or not 0 < len(name) <= MAX_SUBJECT or not name.isprintable():
        raise TokenError("The token does not say whose it is")
    if rules.subjects and not any(fnmatch.fnmatchcase(name, glob) for glob in rules.subjects):
        raise StrangerError
    # An issuer is a URL, so it has no space: no two pairs of issuer and name give the same subject.
    return Identity(f"{rules.issuer} {name}", expires)


def _expiry(claims: Mapping[str, Any], skew: float, now: float) -> float:
    """Until when a token is good that is good now."""
    expires = _time(claims, "exp")
    if expires is None:
        raise TokenError("The token never expires")
    if now >= expires + skew:
        raise TokenError("The token has expired")
    for claim in ("nbf", "iat"):
        since = _time(claims, claim)
        if since is not None and now < since - skew:
            raise TokenError("The token is not valid yet")
    return expires + skew


def _audience(told: object) -> set[str]:
    several = told if isinstance(told, list) else [told]
    return {one for one in several if isinstance(one, str)}


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    """A NumericDate; None if there is none.

    Raises:
        TokenError: it is no time.

    """
    found = claims.get(name)
    if found is None:
        return None
    number = isinstance(found, int | float) and not isinstance(found, bool)
    if not number or not 0 <= found < _LAST:
        raise TokenError(f"The token's {name} is no time")
    return float(found)
