"""The public keys of a token issuer: brought by the operator, kept over a restart of the relay.

The pod may have no way to the issuer, so the relay fetches nothing. Imported only where tokens are JWTs: the
libraries cost memory.
"""

import hashlib
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK, PyJWTError

from mcp_sidecar import log

MAX_KEYS = 64
MIN_RSA_BITS = 2048
UNKNOWN_SECONDS = 5.0
"""Keys that nobody knows are reported at most this often: it takes no right to name one."""
_MEMBERS = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
_CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521", "EdDSA": "Ed25519"}
# The library takes the algorithm of a key that names none from its curve, and of RSA keys this one.
_LOADED_AS = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512", "Ed25519": "EdDSA", "": "RS256"}


class KeySetError(ValueError):
    """A document that is no set of usable keys."""


@dataclass(frozen=True, slots=True)
class _Key:
    curve: str
    """"" for RSA."""
    algorithm: str
    """The only one that it is for; "": any that fits its kind."""
    key: Any

    def serves(self, algorithm: str) -> bool:
        return self.curve == _CURVES.get(algorithm, "") and self.algorithm in ("", algorithm)


class Keyring:
    """The keys by id. Without a set nobody can be let in."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._keys: dict[str, list[_Key]] = {}
        self._told = -UNKNOWN_SECONDS
        self.digest: str | None = None
        """SHA-256 of the set in use, hexadecimal; None: there is none yet."""
        self.unknown = 0
        """How often (not more than once in UNKNOWN_SECONDS) a token named a key that is not in the set."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when `digest` or `unknown` has changed."""

    def take(self, document: bytes) -> None:
        """Use this JWK Set (RFC 7517) from now on, and no other key.

        Raises:
            KeySetError: it has no key that can be used; the set before stays.

        """
        found = _parsed(document) if document.isascii() else {}
        if not found:
            raise KeySetError("it has no public key with an id that can verify signatures")
        self._keys = found
        self.digest = hashlib.sha256(document).hexdigest()
        log.event("keys_changed", keys=sum(map(len, found.values())))
        self.on_change()

    def find(self, name: str, algorithm: str) -> Any:
        """The key of this id for this algorithm; None if there is none."""
        for found in self._keys.get(name, ()):
            if found.serves(algorithm):
                return found.key
        if name not in self._keys and self._clock() - self._told >= UNKNOWN_SECONDS:
            self._told = self._clock()
            self.unknown += 1
            self.on_change()
        return None


def _parsed(document: bytes) -> dict[str, list[_Key]]:
    try:
        keys = json.loads(document)["keys"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise KeySetError("it is no JWK Set") from error
    found: dict[str, list[_Key]] = {}
    for data in keys[:MAX_KEYS] if isinstance(keys, list) else ():
        name = data.get("kid") if isinstance(data, dict) else None
        if isinstance(name, str) and name and (key := _key(data)) is not None:
            found.setdefault(name, []).append(key)
    return found


def _key(data: dict[str, Any]) -> _Key | None:
    """The public key of a JWK for signatures; None for every other, and for one that is too weak."""
    members = _MEMBERS.get(str(data.get("kty")))
    if members is None or data.get("use", "sig") != "sig":
        return None
    public = {"kty": data["kty"], **{name: data.get(name) for name in members}}
    curve, algorithm = str(public.get("crv", "")), data.get("alg", "")
    if curve not in _LOADED_AS or not isinstance(algorithm, str):
        return None
    try:
        key = PyJWK(public, _LOADED_AS[curve]).key
    except (PyJWTError, ValueError, TypeError, AttributeError) as error:
        log.event("key_unusable", logging.WARNING, error=type(error).__name__)
        return None
    if isinstance(key, RSAPublicKey) and key.key_size < MIN_RSA_BITS:
        log.event("key_unusable", logging.WARNING, error=f"fewer than {MIN_RSA_BITS} bits")
        return None
    return _Key(curve, algorithm, key)
