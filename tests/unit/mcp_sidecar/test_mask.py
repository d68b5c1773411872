"""What of the traffic with a remote server is hidden from others."""

import pytest

from mcp_sidecar.remote.mask import Secrets


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("POST /mcp?key=s%20ecret%2F1&on=true", "POST /mcp?***&***"),
        ("the key s ecret/1 is wrong", "the key *** is wrong"),
        ("on=true", "***"),
        ("that is true", "that is true"),
        ("nothing", "nothing"),
    ],
)
def test_values_of_a_query_are_hidden_short_ones_next_to_their_name(text: str, shown: str) -> None:
    secrets = Secrets()
    secrets.path("url", "/mcp?key=s%20ecret%2F1&on=true")
    assert secrets.masked(text) == shown


def test_a_new_value_takes_the_place_of_the_old_one() -> None:
    secrets = Secrets()
    secrets.value("header", "first-value")
    secrets.value("header", "second-value")
    secrets.value("session", "")
    assert secrets.masked("first-value second-value") == "first-value ***"


@pytest.mark.parametrize(
    ("prefix", "value", "text", "shown"),
    [
        ("", "Bearer abcdef-0123", "token abcdef-0123", "token ***"),
        ("", "Bearer abcdef-0123", "Bearer is no scheme", "Bearer is no scheme"),
        ("", 'key="abcdef-0123", id=7', "key abcdef-0123 of id 7", "key *** of id 7"),
        ("Basic ", "am9lOmh1bnRlcjI=", "joe's password is not hunter2", "joe's password is not ***"),
        ("Basic ", "n/o base64", "password", "password"),
        ("", "a/b+c=d8", r"a\/b a/b+c=d8 a%2Fb%2Bc%3Dd8", r"a\/b *** ***"),
        ("", 'quo"te<d', 'quo\\"te<d quo&quot;te&lt;d', "*** ***"),
    ],
)
def test_a_header_s_credentials_are_hidden_by_themselves_and_in_other_spellings(
    prefix: str, value: str, text: str, shown: str
) -> None:
    secrets = Secrets()
    secrets.value("header", value, prefix)
    assert secrets.masked(text) == shown


def test_secrets_are_hidden_wherever_they_stand_in_json() -> None:
    secrets = Secrets()
    secrets.value("header", "abcdef-0123")
    assert secrets.within({"a": ["x abcdef-0123", 1, None], "b": True}) == {
        "a": ["x ***", 1, None],
        "b": True,
    }
