"""Server-sent events out of bytes."""

import itertools
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_sidecar.core import frames
from mcp_sidecar.core.eventstream import Event, EventReader, EventTooLargeError

STREAM = (
    b": comment\n\nevent: endpoint\ndata: /messages\n\nid: 1\r\ndata: {\r\ndata:}\r\n\r\n"
    b"retry: 1500\rdata: x\r\rid: a\0b\nnonsense\ndata\n\nevent: only\n\ndata: last\n\n"
)
EVENTS = [
    Event("endpoint", b"/messages", None),
    Event("message", b"{\n}", "1"),
    Event("message", b"x", "1"),
    Event("message", b"", "1"),
    Event("message", b"last", "1"),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_events_are_the_same_however_they_are_cut(cuts: list[int]) -> None:
    reader = EventReader(1000)
    places = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[start:end] for start, end in itertools.pairwise(places)]
    assert [event for piece in pieces for event in reader.feed(piece)] == EVENTS
    assert reader.retry == 1.5
    assert reader.last_id == "1"


def test_an_event_that_does_not_end_is_bounded() -> None:
    reader = EventReader(100)
    assert reader.feed(b"data: " + b"x" * 90) == []
    with pytest.raises(EventTooLargeError, match="100"):
        reader.feed(b"x" * 20)


def test_many_lines_of_one_event_are_bounded_together() -> None:
    reader = EventReader(100)
    for _ in range(9):
        reader.feed(b"data: 0123456789\n")
    with pytest.raises(EventTooLargeError):
        reader.feed(b"data: 0123456789\ndata: 0\n")


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    for event in EventReader(1000).feed(data + b"\n\n"):
        assert b"\n\n" not in event.data or event.data.count(b"\n") > 1


def test_lines_without_value_are_bounded_too() -> None:
    reader = EventReader(100)
    for _ in range(10):
        reader.feed(b"data\n" * 10)
    with pytest.raises(EventTooLargeError):
        reader.feed(b"data\n" * 10)


def test_an_event_that_did_not_come_whole_is_forgotten_with_its_id() -> None:
    reader = EventReader(1000)
    assert reader.feed(b'id: 1\ndata: a\n\nid: 2\nevent: x\ndata: {"half') == [Event("message", b"a", "1")]
    assert reader.last_id == "1"
    reader.again()
    assert reader.feed(b"data: whole\n\n") == [Event("message", b"whole", "1")]


@pytest.mark.parametrize("value", [b"a\x01b", b"\x7f", b"x" * 5000])
def test_an_id_that_no_header_can_have_is_none(value: bytes) -> None:
    reader = EventReader(10_000)
    reader.feed(b"id: before\n\nid: " + value + b"\n\n")
    assert reader.last_id == "before"


LARGE = b'{"result":{"a":"' + b"x" * 400 + b'"},"jsonrpc":"2.0","id":4294967297}'


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@given(cuts=st.lists(st.integers(0, 600), max_size=8))
def test_an_event_above_the_limit_is_dropped_alone_and_its_ends_are_kept(end: bytes, cuts: list[int]) -> None:
    text = end.join([b": a", b"event: e", b"data: " + LARGE, b"id: 7", b"", b"data: next", b"", b":"])
    reader = EventReader(100, drop=True)
    places = [0, *(cut for cut in sorted(cuts) if cut <= len(text)), len(text)]
    events = [event for start, end in itertools.pairwise(places) for event in reader.feed(text[start:end])]
    assert [event.data for event in events][-1] == b"next"
    assert len(events) == 2
    large = events[0]
    if large.oversized is None:  # it came in one piece
        assert large.data == LARGE
    else:
        assert large.data == b""
        assert large.oversized.size == len(LARGE)
        assert frames.answer_id(large.oversized.head, large.oversized.tail) == 4294967297


def test_what_is_kept_of_an_event_without_end_is_bounded() -> None:
    reader = EventReader(100, drop=True)
    for _ in range(50):
        assert reader.feed(b"data: " + b"x" * 1000) == []
    (event,) = reader.feed(b"\n\n")
    assert event.oversized is not None
    assert len(event.oversized.head) <= 4096
    assert len(event.oversized.tail) <= 256


def test_a_large_event_takes_its_memory_twice_at_most() -> None:
    size = 8 * 1024 * 1024
    piece = b"x" * 65_536
    tracemalloc.start()
    try:
        reader = EventReader(2 * size)
        reader.feed(b"data: ")
        for _ in range(size // len(piece)):
            reader.feed(piece)
        (event,) = reader.feed(b"\n\n")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(event.data) == size
    assert peak < 2.5 * size
