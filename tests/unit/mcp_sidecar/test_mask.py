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
