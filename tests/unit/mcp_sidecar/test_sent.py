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
        ([b"a", b"b" * 11, b"c"], 0, [b"b" * 11, b"c"]),
        ([b"b" * 11, b"c" * 9], 0, [b"b" * 11, b"c" * 9]),
        ([b"b" * 11, b"c" * 10], 0, [b"c" * 10]),
        ([b"b" * 11], 0, [b"b" * 11]),
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


def test_what_waits_to_be_sent_is_kept_beside_what_is_on_its_way() -> None:
    sent = Sent(limit=10)
    sent.add([b"a" * 6] * 10, waiting=20)
    assert sent.after(0) == [b"a" * 6] * 5
    sent.add([b"a" * 6], waiting=0)
    assert sent.after(0) == [b"a" * 6] * 2


def test_what_is_larger_than_needed_is_let_go_of() -> None:
    sent = Sent(limit=10)
    sent.add([b"a", b"b" * 25])
    arrived = sent.count
    sent.add([b"c", b"d" * 25], waiting=45)
    sent.let_go(arrived)
    assert sent.large
    assert sent.after(0) == [b"c", b"d" * 25]
    sent.let_go(sent.count)
    assert not sent.large
    assert (sent.after(0), sent.count) == ([], 4)


def test_nothing_is_forgotten_of_a_connection_that_is_breaking() -> None:
    sent = Sent(limit=10)
    sent.add([b"a" * 6] * 10, waiting=20)
    sent.add([b"b"] * 3, waiting=None)
    assert sent.after(0) == [*([b"a" * 6] * 5), b"b", b"b", b"b"]
