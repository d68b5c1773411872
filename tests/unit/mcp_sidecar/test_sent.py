"""Which frames are to be sent again after a connection broke."""

import pytest

from mcp_sidecar.core.sent import Sent


@pytest.mark.parametrize(
    ("frames", "taken", "again"),
    [
        ([b"a", b"b", b"c"], 3, []),
        ([b"a", b"b", b"c"], 1, [b"b", b"c"]),
        ([b"a", b"b", b"c"], 0, [b"a", b"b", b"c"]),
        ([], 0, []),
        ([b"a"], 5, []),  # more than there were: another's count
        ([b"a", b"b" * 9, b"c"], 0, [b"b" * 9, b"c"]),  # as far as they are kept
        ([b"a", b"b" * 11, b"c"], 0, [b"c"]),
        ([b"b" * 11], 0, []),
        ([b"1", b"2"] * 50, 97, [b"2", b"1", b"2"]),
    ],
)
def test_the_frames_after_those_that_were_taken_are_known(
    frames: list[bytes], taken: int, again: list[bytes]
) -> None:
    sent = Sent(limit=10)
    for frame in frames:
        sent.add([frame])
    assert sent.count == len(frames)
    assert sent.after(taken) == again
