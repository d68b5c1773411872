"""What a token must say to be good here and now."""

from dataclasses import replace
from typing import Any

import pytest

from mcp_sidecar.core.claims import MAX_SUBJECT, Identity, Rules, StrangerError, TokenError, identify

RULES = Rules(issuer="https://i.example", audiences=("a", "b"), clock_skew=30)
CLAIMS = {"iss": "https://i.example", "aud": "a", "sub": "alice", "exp": 1000, "nbf": 900, "iat": 900}


def test_a_good_token_says_who_and_until_when() -> None:
    assert identify(CLAIMS, RULES, 950) == Identity("https://i.example alice", 1030)
    assert identify({**CLAIMS, "aud": ["x", "b"], "exp": 1000.5}, RULES, 950).expires == 1030.5
    del_times = {name: CLAIMS[name] for name in ("iss", "aud", "sub", "exp")}
    assert identify(del_times, RULES, 950) == Identity("https://i.example alice", 1030)


@pytest.mark.parametrize(
    ("now", "good"), [(869.9, False), (870, True), (1029.9, True), (1030, False), (1e12, False)]
)
def test_the_clocks_may_differ_by_the_skew(now: float, good: bool) -> None:
    if good:
        assert identify(CLAIMS, RULES, now).expires == 1030
    else:
        with pytest.raises(TokenError, match=r"expired|not valid yet"):
            identify(CLAIMS, RULES, now)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"iss": "https://i.example/"}, "another issuer"),
        ({"iss": ["https://i.example"]}, "another issuer"),
        ({"aud": "ab"}, "another audience"),
        ({"aud": []}, "another audience"),
        ({"aud": None}, "another audience"),
        ({"aud": [["a"], 7, {"a": 1}]}, "another audience"),
        ({"aud": {"a": 1}}, "another audience"),
        ({"exp": None}, "never expires"),
        ({"exp": "1000"}, "exp is no time"),
        ({"exp": True}, "exp is no time"),
        ({"exp": float("nan")}, "exp is no time"),
        ({"exp": float("inf")}, "exp is no time"),
        ({"exp": 10**400}, "exp is no time"),
        ({"exp": -1}, "exp is no time"),
        ({"nbf": "now"}, "nbf is no time"),
        ({"nbf": 981}, "not valid yet"),
        ({"iat": 981}, "not valid yet"),
        ({"sub": ""}, "whose it is"),
        ({"sub": 7}, "whose it is"),
        ({"sub": "a\0b"}, "whose it is"),
        ({"sub": "\ud800"}, "whose it is"),
        ({"sub": "x" * (MAX_SUBJECT + 1)}, "whose it is"),
    ],
)
def test_a_bad_claim_is_told(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(TokenError, match=words):
        identify({**CLAIMS, **changes}, RULES, 950)


@pytest.mark.parametrize(
    ("subjects", "good"),
    [((), True), (("alice",), True), (("bob", "al*"), True), (("bob",), False), (("Alice", "alic"), False)],
)
def test_only_those_who_are_listed_may_come_in(subjects: tuple[str, ...], good: bool) -> None:
    rules = replace(RULES, subjects=subjects)
    if good:
        assert identify(CLAIMS, rules, 950).subject == "https://i.example alice"
        return
    with pytest.raises(StrangerError):
        identify(CLAIMS, rules, 950)
    with pytest.raises(TokenError):
        identify({**CLAIMS, "aud": "x"}, rules, 950)


def test_another_claim_may_say_who_it_is() -> None:
    rules = replace(RULES, subject_claim="oid")
    assert identify({**CLAIMS, "oid": "7"}, rules, 950).subject == "https://i.example 7"
    with pytest.raises(TokenError, match="whose it is"):
        identify(CLAIMS, rules, 950)
