"""A token issuer: keys, the set of public ones, and tokens of every kind, good and bad."""

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.api_jws import PyJWS

from mcp_sidecar.core.claims import Rules

Json = dict[str, Any]
ISSUER, AUDIENCE = "https://issuer.example", "https://mcp.example/mcp"
RULES = Rules(issuer=ISSUER, audiences=(AUDIENCE,), clock_skew=0.0)
Private = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def part(data: bytes | Json) -> str:
    """One part of a token."""
    text = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


class Issuer:
    """Signs with the key of `kid`, or with its first one; `add` makes keys, `remove` withdraws them."""

    def __init__(self, first: str = "first", issuer: str = ISSUER, audience: str = AUDIENCE) -> None:
        self.first, self.issuer, self.audience = first, issuer, audience
        self.keys: dict[str, Private] = {}
        self.add(first)

    def add(self, kid: str, kind: str = "RS256") -> Private:
        made: Private
        if kind.startswith("ES"):
            made = ec.generate_private_key({"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1()}[kind])
        elif kind == "EdDSA":
            made = ed25519.Ed25519PrivateKey.generate()
        else:
            made = rsa.generate_private_key(65537, 2048)
        self.keys[kid] = made
        return made

    def remove(self, kid: str) -> None:
        del self.keys[kid]

    def jwk(self, kid: str) -> Json:
        """The public key as a JWK."""
        kinds = {rsa.RSAPrivateKey: "RS256", ec.EllipticCurvePrivateKey: "ES256"}
        algorithm = next((name for kind, name in kinds.items() if isinstance(self.keys[kid], kind)), "EdDSA")
        text = jwt.get_algorithm_by_name(algorithm).to_jwk(self.public(kid))
        return {**json.loads(text), "kid": kid, "use": "sig"}

    def jwks(self) -> bytes:
        return json.dumps({"keys": [self.jwk(kid) for kid in self.keys]}).encode()

    def public(self, kid: str) -> Any:
        """The public key, which everybody can have."""
        return self.keys[kid].public_key()

    def claims(self, subject: str = "alice", **changes: Any) -> Json:
        """Good claims for the next minute; a changed one that is None is left out."""
        now = time.time()
        made: Json = {"iss": self.issuer, "aud": self.audience, "sub": subject}
        made |= {"iat": now, "nbf": now, "exp": now + 60}
        return {name: value for name, value in (made | changes).items() if value is not None}

    def token(
        self,
        subject: str = "alice",
        *,
        kid: str = "",
        algorithm: str = "RS256",
        header: Json | None = None,
        **changes: Any,
    ) -> str:
        """A token that is good unless something is changed."""
        kid = kid or self.first
        top = {"kid": kid, **(header or {})}
        return jwt.encode(self.claims(subject, **changes), self.keys[kid], algorithm, headers=top)

    def signed(self, **changes: Any) -> str:
        """A token with claims that the library would not put into one."""
        return self.signed_text(json.dumps({**self.claims(), **changes}).encode())

    def signed_text(self, text: bytes) -> str:
        """A well signed token with this text in the place of claims."""
        return PyJWS().encode(text, self.keys[self.first], "RS256", headers={"kid": self.first})

    def unsigned(self, **header: Any) -> str:
        """A token with good claims and no signature."""
        return f"{part({'typ': 'JWT', 'kid': self.first, **header})}.{part(self.claims())}."

    def confused(self, algorithm: str = "HS256") -> str:
        """A token signed with the public key as if that were a shared secret."""
        text = f"{part({'typ': 'JWT', 'alg': algorithm, 'kid': self.first})}.{part(self.claims())}"
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        pem = self.public(self.first).public_bytes(serialization.Encoding.PEM, form)
        return f"{text}.{part(hmac.digest(pem, text.encode(), hashlib.sha256))}"


def bad_tokens(issuer: Issuer) -> dict[str, str]:
    """Tokens that open nothing where `issuer` is trusted."""
    now, good = time.time(), issuer.token()
    foreign = Issuer(issuer.first, issuer.issuer, issuer.audience)
    top, claims, signature = good.split(".")
    elsewhere = {"jku": "https://evil.example/keys", "x5u": "https://evil.example/cert"}
    return {
        "none": issuer.unsigned(alg="none"),
        "None": issuer.unsigned(alg="None"),
        "no algorithm": issuer.unsigned(),
        "algorithm is a list": issuer.unsigned(alg=["RS256"]) + signature,
        "signature cut off": f"{top}.{claims}.",
        "key confusion": issuer.confused(),
        "key confusion, said to be asymmetric": issuer.confused("RS256"),
        "algorithm of another kind of key": issuer.confused("ES256"),
        "another issuer": issuer.token(iss="https://other.example"),
        "issuer with a slash": issuer.token(iss=f"{issuer.issuer}/"),
        "no issuer": issuer.token(iss=None),
        "another audience": issuer.token(aud="https://other.example/mcp"),
        "other audiences": issuer.token(aud=["a", "b"]),
        "no audience": issuer.token(aud=None),
        "expired": issuer.token(exp=now - 1),
        "no end": issuer.token(exp=None),
        "end is no number": issuer.signed(exp="tomorrow"),
        "end is infinite": issuer.signed(exp=float("inf")),
        "not yet valid": issuer.token(nbf=now + 60),
        "issued in the future": issuer.token(iat=now + 60),
        "unknown key": issuer.token(header={"kid": "nobody"}),
        "no key named": issuer.token(header={"kid": ""}),
        "key named by a number": issuer.unsigned(alg="RS256", kid=1) + signature,
        "key of another": foreign.token(),
        "key of its own": foreign.token(header={"jwk": foreign.jwk(issuer.first)}),
        "keys elsewhere": foreign.token(header=elsewhere),
        "path as a key": issuer.token(header={"kid": "../../dev/null"}),
        "critical extension": issuer.unsigned(alg="RS256", crit=["exp"]) + signature,
        "no subject": issuer.token(sub=None),
        "empty subject": issuer.token(""),
        "subject is a list": issuer.signed(sub=["alice"]),
        "subject with a line feed": issuer.token("alice\n"),
        "other claims under a good signature": f"{top}.{part(issuer.claims('bob'))}.{signature}",
        "too large": issuer.token(padding="x" * 7000),
        "claims are no object": issuer.signed_text(b"[]"),
        "claims nested without end": issuer.signed_text(b"[" * 3000),
        "four parts": f"{good}.{signature}",
        "two parts": f"{top}.{claims}",
        "padded": f"{good}==",
        "space within": good.replace(".", ". "),
        "garbage": "garbage",
        "dots": "..",
        "nothing": "",
    }
