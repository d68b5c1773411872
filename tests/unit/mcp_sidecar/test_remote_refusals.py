"""What refusals of a remote server mean to the relay's own wishes, and how they are told."""

import pytest

from mcp_sidecar.core.fate import Said
from mcp_sidecar.remote.outcome import told
from mcp_sidecar.remote.stream import offers_none


@pytest.mark.parametrize(
    ("status", "streamed", "none"),
    [
        (200, False, True),
        (303, False, True),
        (405, False, True),
        (405, True, True),
        (501, True, True),
        (400, False, True),
        (404, False, True),
        (404, True, False),
        (401, False, False),
        (403, False, False),
        (409, False, False),
        (429, True, False),
        (500, False, False),
    ],
)
def test_which_refusals_say_that_there_is_no_stream(status: int, *, streamed: bool, none: bool) -> None:
    assert offers_none(status, streamed=streamed) is none


@pytest.mark.parametrize(
    ("said", "body", "shown"),
    [
        (None, b"no\n such  thing", "HTTP 400: no such thing"),
        (None, b"<html>", "HTTP 400"),
        (None, b"", "HTTP 400"),
        (None, b"\x1b[31mred\x00\xe2\x80\xaetxt", "HTTP 400: [31mred txt"),
        (None, rb'{"error": "a\/b \u00e4 \ud800"}', 'HTTP 400: {"error": "a/b ä ?"}'),
        (Said(-32000, "really"), b"{}", "HTTP 400: really"),
    ],
)
def test_how_a_refusal_is_told(said: Said | None, body: bytes, shown: str) -> None:
    assert told(400, said, body, lambda text: text) == shown
