"""Signed tokens: what is remembered of them, for how long, and what of a key set is used."""

import hashlib
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from mcp_sidecar.core.claims import Rules, TokenError
from mcp_sidecar.web import verifier as verifiers
from mcp_sidecar.web.keyring import MAX_SOURCE, UNKNOWN_SECONDS, Keyring, KeySetError
from mcp_sidecar.web.verifier import NoKeysError, Verifier
from relaykit.issuer import RULES, Issuer


class Bench:
    """A verifier with a clock of the test's, which counts how often a signature was verified."""

    def __init__(self, issuer: Issuer, rules: Rules = RULES) -> None:
        self.issuer = issuer
        self.now = 1_000_000.0
        self.keyring = Keyring(lambda: self.now)
        self.keyring.take(issuer.jwks())
        self.verifier = Verifier(rules, self.keyring, lambda: self.now)
        self.looked = 0
        find = self.keyring.find

        def counted(name: str, algorithm: str) -> Any:
            self.looked += 1
            return find(name, algorithm)

        self.keyring.find = counted  # type: ignore[method-assign]  # the test counts

    def token(self, subject: str = "alice", seconds: float = 60) -> bytes:
        times: dict[str, Any] = {"exp": self.now + seconds, "iat": self.now, "nbf": self.now}
        return self.issuer.token(subject, **times).encode()


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
def bench(issuer: Issuer) -> Bench:
    return Bench(issuer)


def test_a_token_is_verified_once_and_never_after_its_end(bench: Bench) -> None:
    token = bench.token(seconds=60)
    found = bench.verifier.identify(token)
    assert bench.verifier.identify(token) is found
    assert bench.looked == 1
    bench.now += 59.9
    assert bench.verifier.identify(token) is found
    bench.now += 0.1
    with pytest.raises(TokenError, match="expired"):
        bench.verifier.identify(token)


def test_other_keys_have_every_token_verified_anew(bench: Bench) -> None:
    token, other = bench.token(), Issuer()
    bench.verifier.identify(token)
    bench.keyring.take(other.jwks())
    with pytest.raises(TokenError, match="signature is wrong"):
        bench.verifier.identify(token)


def test_what_is_remembered_is_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifiers, "MAX_KNOWN", 4)
    tokens = [bench.token(f"user{n}") for n in range(10)]
    for token in tokens:
        bench.verifier.identify(token)
    assert len(bench.verifier._known) == 4
    bench.verifier.identify(tokens[-1])
    assert bench.looked == 10
    bench.verifier.identify(tokens[0])
    assert bench.looked == 11


def test_a_refused_token_is_not_remembered(bench: Bench) -> None:
    with pytest.raises(TokenError):
        bench.verifier.identify(bench.token(seconds=-1))
    assert bench.verifier._known == {}


def test_without_keys_nothing_can_be_said(issuer: Issuer) -> None:
    with pytest.raises(NoKeysError):
        Verifier(RULES, Keyring()).identify(issuer.token().encode())


def test_an_algorithm_that_is_not_listed_is_refused_though_its_key_is_known(issuer: Issuer) -> None:
    rules = Rules(issuer=RULES.issuer, audiences=RULES.audiences, algorithms=("ES256", "RS512"))
    bench = Bench(issuer, rules)
    with pytest.raises(TokenError, match="algorithm is not accepted"):
        bench.verifier.identify(bench.token())
    assert bench.looked == 0


def test_a_key_serves_only_what_it_is_for(issuer: Issuer) -> None:
    keyring = Keyring()
    keyring.take(json.dumps({"keys": [{**issuer.jwk("first"), "alg": "PS256"}]}).encode())
    assert keyring.find("first", "PS256") is not None
    assert [keyring.find("first", name) for name in ("RS256", "ES256", "EdDSA")] == [None] * 3


def test_unknown_keys_are_reported_now_and_then(issuer: Issuer) -> None:
    now, told = [0.0], []
    keyring = Keyring(lambda: now[0])
    keyring.take(issuer.jwks())
    keyring.on_change = lambda: told.append(keyring.unknown)
    for _ in range(50):
        keyring.find("nobody", "RS256")
    now[0] += UNKNOWN_SECONDS
    keyring.find("nobody", "RS256")
    keyring.find("first", "ES256")  # known, but no key for that
    assert told == [1, 2]


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keys":{}}',
        b"[" * 5000,
        '{"keys":[{"kid":"\u00e9"}]}'.encode(),
    ],
)
def test_a_document_that_is_no_set_leaves_the_old_keys(issuer: Issuer, document: bytes) -> None:
    keyring = Keyring()
    keyring.take(issuer.jwks())
    before = keyring.digest
    with pytest.raises(KeySetError):
        keyring.take(document)
    assert keyring.digest == before
    assert keyring.find("first", "RS256") is not None


@pytest.mark.parametrize(
    "document",
    [
        b'{"keys":[]}',
        b'{"keys":["x",7,null,[]]}',
        b'{"keys":[{"kty":"oct","kid":"a","k":"AQ"}]}',
        b'{"keys":[{"kty":"RSA","kid":"a"}]}',
        b'{"keys":[{"kty":"RSA","kid":"a","n":7,"e":[]}]}',
        b'{"keys":[{"kty":"EC","kid":"a","crv":"P-256","x":"AQ","y":"AQ"}]}',
        b'{"keys":[{"kty":"EC","kid":"a","crv":"secp256k1","x":"AQ","y":"AQ"}]}',
        b'{"keys":[{"kty":"OKP","kid":"a","crv":"X25519","x":"AQ"}]}',
        b'{"keys":[{"kty":["RSA"],"kid":"a"}]}',
    ],
)
def test_a_set_without_usable_keys_takes_back_the_old_ones(bench: Bench, document: bytes) -> None:
    token = bench.token()
    bench.verifier.identify(token)
    bench.keyring.take(document)
    assert bench.keyring.digest == hashlib.sha256(document).hexdigest()
    assert bench.keyring.usable == 0
    with pytest.raises(NoKeysError):
        bench.verifier.identify(token)


def test_a_set_names_its_source_and_how_much_of_it_is_of_use(issuer: Issuer) -> None:
    keyring = Keyring()
    unusable = {"kty": "EC", "kid": "a", "crv": "secp256k1", "x": "AQ", "y": "AQ"}
    keyring.take(json.dumps({"keys": [issuer.jwk("first"), unusable], "source": "s" * 999}).encode())
    assert (keyring.usable, keyring.source) == (1, "s" * MAX_SOURCE)
    keyring.take(json.dumps({"keys": [], "source": ["x"]}).encode())
    assert (keyring.usable, keyring.source) == (0, "")


def test_an_rsa_key_that_is_too_short_is_not_used(issuer: Issuer) -> None:
    weak, keyring = Issuer(), Keyring()
    weak.keys["first"] = rsa.generate_private_key(65537, 1024)  # noqa: S505 - that is the point
    keyring.take(weak.jwks())
    assert (keyring.usable, keyring.find("first", "RS256")) == (0, None)
