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
MAX_SOURCE = 64
MIN_RSA_BITS = 2048
UNKNOWN_SECONDS = 5.0
"""Keys that nobody knows are reported at most this often: it takes no right to name one."""
_MEMBERS = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
_CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521", "EdDSA": "Ed25519"}
# The library takes the algorithm of a key that names none from its curve, and of RSA keys this one.
_LOADED_AS = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512", "Ed25519": "EdDSA", "": "RS256"}


class KeySetError(ValueError):
    """A document that is no JWK Set."""


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
    """The keys by id. Without any nobody can be let in."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._keys: dict[str, list[_Key]] = {}
        self._told = -UNKNOWN_SECONDS
        self.digest: str | None = None
        """SHA-256 of the set in use, hexadecimal; None: there is none yet."""
        self.source = ""
        """What the operator calls the place where the set comes from."""
        self.usable = 0
        """How many keys of the set can verify signatures."""
        self.unknown = 0
        """How often (not more than once in UNKNOWN_SECONDS) a token named a key that is not in the set."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when `digest` or `unknown` has changed."""

    def take(self, document: bytes) -> None:
        """Use this JWK Set (RFC 7517) from now on, and no other key.

        One without a usable key takes the place of the one before, too: whoever publishes it takes keys back.

        Raises:
            KeySetError: it is no JWK Set; the set before stays.

        """
        data = _set(document)
        self._keys = _parsed(data["keys"])
        source = data.get("source")
        self.source = source[:MAX_SOURCE] if isinstance(source, str) else ""
        self.digest = hashlib.sha256(document).hexdigest()
        self.usable = sum(map(len, self._keys.values()))
        log.event("keys_changed", logging.INFO if self.usable else logging.WARNING, keys=self.usable)
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


def _set(document: bytes) -> dict[str, Any]:
    """A JWK Set: an object whose `keys` is an array (RFC 7517, section 5)."""
    try:
        found = json.loads(document) if document.isascii() else None
    except (ValueError, RecursionError) as error:
        raise KeySetError("it is no JWK Set") from error
    if not isinstance(found, dict) or not isinstance(found.get("keys"), list):
        raise KeySetError("it is no JWK Set")
    return found


def _parsed(keys: list[Any]) -> dict[str, list[_Key]]:
    found: dict[str, list[_Key]] = {}
    for data in keys[:MAX_KEYS]:
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
