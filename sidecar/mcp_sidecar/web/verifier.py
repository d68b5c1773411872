"""Signed tokens (JWT, RFC 7519): whose they are. Imported only where clients are to have such tokens."""

import hashlib
import json
import re
import time
from collections.abc import Callable
from typing import Any

from jwt import PyJWTError
from jwt.api_jws import PyJWS

from mcp_sidecar.core import claims
from mcp_sidecar.core.claims import Identity, Rules, TokenError
from mcp_sidecar.web.keyring import Keyring

MAX_TOKEN_BYTES = 8192
MAX_KNOWN = 1024
# As a signature over it was made: header, claims and signature, base64url without padding (RFC 7515, 7.1).
_COMPACT = re.compile(rb"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)


class NoKeysError(Exception):
    """Nobody can be verified: no key of the issuer is there."""


class Verifier:
    """Tells whose a token is; one that was verified is known by its digest until it expires."""

    def __init__(self, rules: Rules, keyring: Keyring, clock: Callable[[], float] = time.time) -> None:
        self._rules = rules
        self._keyring = keyring
        self._clock = clock
        self._signatures = PyJWS(algorithms=list(rules.algorithms))
        self._known: dict[bytes, Identity] = {}
        self._known_with = keyring.digest

    def identify(self, token: bytes) -> Identity:
        """Who the token's holder is.

        Raises:
            TokenError: the token is not good.
            StrangerError: it is good, and its holder may not come in.
            NoKeysError: that cannot be said yet.

        """
        if len(token) > MAX_TOKEN_BYTES:
            raise TokenError("The token is too large")
        now = self._clock()
        if self._known_with != self._keyring.digest:
            self._known.clear()
            self._known_with = self._keyring.digest
        digest = hashlib.sha256(token).digest()
        known = self._known.get(digest)
        if known is not None and now < known.expires:
            return known
        found = claims.identify(self._claims(token), self._rules, now)
        self._remember(digest, found, now)
        return found

    def _claims(self, token: bytes) -> dict[str, Any]:
        """The claims of a token with a good signature by a key of the issuer.

        Where a key lies (`jku`, `x5u`, `jwk`, `x5c`) is never taken from the token.
        """
        if _COMPACT.fullmatch(token) is None:
            raise TokenError("The token is malformed")
        try:
            algorithm, name = self._header(token)
            if not self._keyring.usable:
                raise NoKeysError
            key = self._keyring.find(name, algorithm)
            if key is None:
                raise TokenError("The token is signed with a key that the issuer does not publish")
            text = self._signatures.decode_complete(token, key, algorithms=[algorithm])["payload"]
            found = json.loads(text)
        except (PyJWTError, ValueError, RecursionError) as error:
            raise TokenError("The token is malformed, or its signature is wrong") from error
        if not isinstance(found, dict):
            raise TokenError("The token is malformed")
        return found

    def _header(self, token: bytes) -> tuple[str, str]:
        """The algorithm and the id of the key that the token claims to be signed with."""
        header = self._signatures.get_unverified_header(token)
        algorithm, name = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in self._rules.algorithms:
            raise TokenError("The token's algorithm is not accepted")
        if "crit" in header or "b64" in header:
            raise TokenError("The token has extensions that are not understood")
        if not isinstance(name, str) or not name:
            raise TokenError("The token does not name its key")
        return algorithm, name

    def _remember(self, digest: bytes, found: Identity, now: float) -> None:
        if len(self._known) >= MAX_KNOWN:
            self._known = {key: known for key, known in self._known.items() if now < known.expires}
        while len(self._known) >= MAX_KNOWN:
            self._known.pop(next(iter(self._known)))
        self._known[digest] = found
