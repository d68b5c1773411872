"""The keys of token issuers: where they are, what of them reaches a relay, and what follows without them."""

import json
from typing import Any

import pytest

from mcp_operator.core import keys, status
from mcp_operator.core.api import ConditionType, ErrorPhase
from mcp_operator.core.decide import decide
from mcp_operator.core.keys import KeySetError
from mcp_operator.core.observation import KeysView, RelayView
from mcp_operator.manifests import relay as relay_manifest
from mcp_operator.manifests.identity import Owner
from mcp_operator.settings import Settings
from mcp_relay_api import paths

JWT = {"issuer": "https://issuer.example", "audiences": ["https://mcp.example"]}
AUTH = {"type": "JWT", "jwt": JWT}
RSA = {"kty": "RSA", "kid": "a", "n": "AQ", "e": "AQAB"}
EC = {"kty": "EC", "kid": "b", "crv": "P-256", "x": "AQ", "y": "AQ", "use": "sig", "alg": "ES256"}
PROBLEM = "spec.auth.jwt.issuer: https://issuer.example: the keys cannot be fetched: it does not answer"


@pytest.mark.parametrize(
    ("issuer", "openid", "oauth"),
    [
        ("https://a.example", "https://a.example/{o}", "https://a.example/{r}"),
        ("https://a.example/", "https://a.example/{o}", "https://a.example/{r}"),
        ("https://a.example:8443/b/c", "https://a.example:8443/b/c/{o}", "https://a.example:8443/{r}/b/c"),
    ],
)
def test_an_issuer_tells_of_itself_at_the_well_known_places(issuer: str, openid: str, oauth: str) -> None:
    known = {"o": ".well-known/openid-configuration", "r": ".well-known/oauth-authorization-server"}
    assert keys.places(issuer) == (openid.format(**known), oauth.format(**known))


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"issuer": "https://other.example", "jwks_uri": "https://a.example/keys"}, "another issuer"),
        ({"issuer": "https://a.example/", "jwks_uri": "https://a.example/keys"}, "another issuer"),
        ({"jwks_uri": "https://a.example/keys"}, "another issuer"),
        ({"issuer": "https://a.example", "jwks_uri": "http://a.example/keys"}, "spec.auth.jwt.jwksURI"),
        ({"issuer": "https://a.example", "jwks_uri": ["https://a.example"]}, "spec.auth.jwt.jwksURI"),
        ({"issuer": "https://a.example"}, "spec.auth.jwt.jwksURI"),
        *(
            ({"issuer": "https://a.example", "jwks_uri": place}, "spec.auth.jwt.jwksURI")
            for place in (
                "https://",
                "https:///keys",
                "https://user:secret@a.example/keys",
                "https://user@a.example/keys",
                "https://a.example:port/keys",
                "https://a.example:99999/keys",
                "https://[::1/keys",
                "https://a.example/ke ys",
                "https://a.example/keys\n",
                "https://a.example\\@b.example/keys",
                "https://\u00e4.example/keys",
            )
        ),
    ],
)
def test_a_place_of_keys_that_cannot_be_trusted_is_refused(told: dict[str, Any], words: str) -> None:
    with pytest.raises(KeySetError, match=words):
        keys.location(told, "https://a.example")


@pytest.mark.parametrize(
    "place", ["https://a.example/k?v=1", "https://[::1]:8443/k", "https://b.example:443/k"]
)
def test_a_place_of_keys_is_any_https_url(place: str) -> None:
    assert keys.location({"issuer": "https://a.example", "jwks_uri": place}, "https://a.example") == place


def test_only_public_members_of_keys_for_signatures_with_an_id_pass() -> None:
    document = {
        "keys": [
            {**RSA, "d": "secret", "p": "secret", "x5c": ["x"]},
            EC,
            {**RSA, "kid": "c", "use": "enc"},
            {"kty": "oct", "kid": "d", "k": "secret"},
            {"kty": "RSA", "n": "AQ", "e": "AQAB"},
            {**RSA, "kid": ["e"]},
            "no key",
        ],
        "more": "x",
    }
    found = keys.key_set(document)
    assert json.loads(found.document) == {"keys": [EC, RSA]}
    assert found == keys.key_set({"keys": list(reversed(document["keys"]))}), "an order says nothing"
    assert found.digest != keys.key_set({"keys": [RSA]}).digest


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"keys": []}, "no public key"),
        ({"keys": ["x", 7, None, []]}, "no public key"),
        ({"keys": [{"kty": "oct", "kid": "a", "k": "AQ"}]}, "no public key"),
        ({"keys": [{**EC, "crv": "secp256k1"}]}, "no public key"),
        ({"keys": [{"kty": "OKP", "kid": "a", "crv": "X25519", "x": "AQ"}]}, "no public key"),
        ({"keys": [{**RSA, "kid": str(n)} for n in range(keys.MAX_KEYS + 1)]}, "more than 64 keys"),
        ({"keys": [{**RSA, "n": "A" * paths.MAX_KEY_SET_BYTES}]}, "bytes of them"),
    ],
)
def test_a_set_without_keys_that_can_be_used_is_an_empty_one(document: dict[str, Any], words: str) -> None:
    found = keys.key_set(document, "place")
    assert json.loads(found.document) == {"keys": [], "source": "place"}
    assert words in found.problem


@pytest.mark.parametrize("document", [{}, {"keys": {"a": RSA}}, {"keys": None}, {"error": "x"}])
def test_what_is_no_set_is_told(document: dict[str, Any]) -> None:
    with pytest.raises(KeySetError, match="no JWK Set"):
        keys.key_set(document)


def test_keys_of_two_places_are_two_sets() -> None:
    places = [
        ("https://a.example", None),
        ("https://a.example", "https://a.example/k"),
        ("https://b.example", None),
    ]
    made = {keys.key_set({"keys": [RSA]}, keys.mark(*place)).digest for place in places}
    assert len(made) == 3


def report(world: Any, digest: str | None) -> RelayView:
    return RelayView(world.report(keys={"digest": digest, "unknown": 0}))


@pytest.mark.parametrize(
    ("told", "view", "plan", "error"),
    [
        (None, KeysView(), "keyless: Wait -> Connecting (Initialized)", None),
        (None, KeysView("one"), "keyless: Wait -> Connecting (Initialized)", None),
        (None, KeysView(None, PROBLEM), "keyless: Wait -> Connecting (KeysUnavailable)", "Validation"),
        ("one", KeysView("one"), "connected: None -> Connected (Connected)", None),
        ("old", KeysView("one"), "connected: None -> Connected (Connected)", None),
        ("one", KeysView(), "connected: None -> Connected (Connected)", None),
        ("one", KeysView("one", PROBLEM), "connected: None -> Connected (Connected)", "Validation"),
    ],
)
def test_a_server_is_ready_once_its_relay_has_keys(
    world: Any, told: str | None, view: KeysView, plan: str, error: str | None
) -> None:
    seen = world.seen(spec=world.spec(auth=AUTH), relay=report(world, told), keys=view)
    decided = decide(seen)
    assert str(decided) == plan
    assert (decided.failure.phase if decided.failure else None) == (ErrorPhase(error) if error else None)
    assert decided.budget.failures == 0


def test_the_conditions_name_the_field_and_a_server_with_older_keys_stays_ready(world: Any) -> None:
    for told, ready in ((None, "False"), ("one", "True")):
        view = KeysView(told, PROBLEM)
        seen = world.seen(spec=world.spec(auth=AUTH), relay=report(world, told), keys=view)
        found = status.compute(seen, decide(seen), status.Context("image", "http://mcp-time.default.svc/mcp"))
        conditions = {condition.type: condition for condition in found.conditions}
        accepted = conditions[ConditionType.ACCEPTED]
        assert (accepted.status, accepted.reason, accepted.message) == ("False", "KeysUnavailable", PROBLEM)
        assert conditions[ConditionType.READY].status == ready
        assert (found.address is not None) is (ready == "True")


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (
            KeysView("one"),
            "spec.auth.jwt.issuer: https://issuer.example: none of its keys can verify a signature",
        ),
        (KeysView("two"), "the relay is given the keys"),
        (KeysView("one", PROBLEM), PROBLEM),
        (KeysView("two", refusal="HTTP 400"), "the relay does not take the keys: HTTP 400"),
    ],
)
def test_a_server_whose_relay_can_use_no_key_is_not_ready_and_says_why(
    world: Any, view: KeysView, words: str
) -> None:
    told = RelayView(world.report(keys={"digest": "one", "unknown": 0, "usable": 0}))
    seen = world.seen(spec=world.spec(auth=AUTH), relay=told, keys=view)
    found = status.compute(seen, decide(seen), status.Context("image", "http://mcp-time.default.svc/mcp"))
    ready = next(one for one in found.conditions if one.type == ConditionType.READY)
    assert ready.status == "False"
    assert words in ready.message


@pytest.mark.parametrize(
    ("told", "view", "expected"),
    [
        ({"digest": "one", "source": "here"}, KeysView(None, PROBLEM, "here"), False),
        ({"digest": "one", "source": "there"}, KeysView(None, PROBLEM, "here"), True),
        ({"digest": "one"}, KeysView(None, PROBLEM, "here"), True),
        ({"digest": "one", "source": "there"}, KeysView(None, "", "here"), False),
        ({"digest": None}, KeysView(None, PROBLEM, "here"), False),
    ],
)
def test_a_relay_gives_up_the_keys_of_another_place_once_its_own_cannot_be_asked(
    world: Any, told: dict[str, Any], view: KeysView, expected: bool
) -> None:
    seen = world.seen(relay=RelayView(world.report(keys={"unknown": 0, **told})), keys=view)
    assert keys.outdated(seen) is expected


@pytest.mark.parametrize(
    ("told", "view", "expected"),
    [
        ("one", KeysView("one"), False),
        ("one", KeysView("two"), True),
        (None, KeysView("one"), True),
        ("one", KeysView(), False),
        ("one", None, False),
    ],
)
def test_a_relay_with_other_keys_is_given_the_new_ones(
    world: Any, told: str | None, view: KeysView | None, expected: bool
) -> None:
    assert keys.outdated(world.seen(relay=report(world, told), keys=view)) is expected
    assert not keys.outdated(world.seen(relay=RelayView(world.report()), keys=view))
    silent = RelayView(report(world, told).status, failures=1)
    assert not keys.outdated(world.seen(relay=silent, keys=view))


def test_the_relay_is_told_the_rules_and_not_the_place_of_the_keys(world: Any) -> None:
    jwt = {**JWT, "jwksURI": "https://keys.example", "algorithms": ["ES256"], "clockSkewSeconds": 5}
    spec = world.spec(auth={"type": "JWT", "jwt": jwt})
    container = relay_manifest.build(Owner("time", "default", "u"), spec, Settings())
    told = {entry["name"]: entry["value"] for entry in container["env"]}
    assert told[paths.ENV_AUTH] == "JWT"
    wanted = {**JWT, "algorithms": ["ES256"], "clockSkewSeconds": 5}
    assert json.loads(told[paths.ENV_JWT]) == wanted
    plain = relay_manifest.build(Owner("time", "default", "u"), world.spec(), Settings())
    assert paths.ENV_JWT not in {entry["name"] for entry in plain["env"]}
