"""What somebody who is not trusted sends in place of a JSON object."""

import pytest

from mcp_operator.adapters import body
from mcp_operator.adapters.errors import NoObjectError


def test_a_json_object_is_read() -> None:
    assert body.json_object(b'{"keys": []}') == {"keys": []}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no JSON"),
        (b"secret of the house", "no JSON"),
        (b"\xff\xfe\x00secret", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'["secret"]', "no object"),
        (b"null", "no object"),
    ],
)
def test_what_is_no_json_object_is_told_without_what_is_there(content: bytes, words: str) -> None:
    with pytest.raises(NoObjectError, match=words) as caught:
        body.json_object(content)
    assert "secret" not in str(caught.value)
