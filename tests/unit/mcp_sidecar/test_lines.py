import errno
import gc
import mmap
import random
import tracemalloc

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_sidecar.core.lines import (
    HEAD_BYTES,
    MAPPED_BYTES,
    TAIL_BYTES,
    Line,
    LineSplitter,
    Oversized,
    has,
    joined,
)


@given(st.binary(), st.lists(st.integers(0, 50)))
def test_lines_come_out_whole_however_they_were_cut(data: bytes, cuts: list[int]) -> None:
    data += b"\n"
    whole = data.split(b"\n")[:-1]
    splitter = LineSplitter(1000)
    got: list[Line | Oversized] = []
    for cut in [*cuts, len(data)]:
        got += splitter.feed(data[:cut])
        data = data[cut:]
    assert got == whole
    assert splitter.feed(b"x\n") == [b"x"]


@given(
    st.lists(st.binary(max_size=600).map(lambda line: line.replace(b"\n", b"")), min_size=1),
    st.integers(1, 7),
)
def test_a_line_above_the_limit_is_dropped_alone(lines: list[bytes], step: int) -> None:
    data, splitter = b"".join(line + b"\n" for line in lines), LineSplitter(10)
    got: list[Line | Oversized] = []
    for start in range(0, len(data), step):
        got += splitter.feed(data[start : start + step])
    assert len(got) == len(lines)
    for line, out in zip(lines, got, strict=True):
        if len(line) <= 10:
            assert out == line
        else:
            assert isinstance(out, Oversized)
            assert out.size == len(line)
            assert line.startswith(out.head)
            assert out.tail == line[-TAIL_BYTES:]


def test_an_endless_line_costs_bounded_memory() -> None:
    splitter, piece = LineSplitter(10_000), b"x" * 1000
    tracemalloc.start()
    for _ in range(1000):
        assert splitter.feed(piece) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50_000
    assert splitter.feed(b"\nnext\n") == [
        Oversized(1_000_000, b"x" * HEAD_BYTES, b"x" * TAIL_BYTES),
        b"next",
    ]


LIMIT = 3 << 20


@pytest.mark.parametrize("size", [MAPPED_BYTES - 1, MAPPED_BYTES, MAPPED_BYTES + 1, LIMIT - 1, LIMIT])
def test_a_large_line_comes_out_as_it_was_and_the_next_ones_too(size: int) -> None:
    line = random.Random(size).randbytes(size).replace(b"\n", b" ")  # noqa: S311 -- no secret
    splitter, got = LineSplitter(LIMIT), []
    data = b"".join((b"before\n", line, b"\nafter\n", line, b"\n"))
    for start in range(0, len(data), 60_000):
        got += splitter.feed(data[start : start + 60_000])
    assert got == [b"before", line, b"after", line]


def test_a_large_line_above_the_limit_is_dropped_alone() -> None:
    splitter, piece, got = LineSplitter(LIMIT), b"x" * 100_000, []
    for _ in range(40):
        got += splitter.feed(piece)
    got += splitter.feed(b"end\n" + b"y" * 10)
    got += splitter.feed(b"\n")
    assert got == [Oversized(4_000_003, b"x" * HEAD_BYTES, b"x" * (TAIL_BYTES - 3) + b"end"), b"y" * 10]


def test_the_memory_of_a_large_line_goes_with_it() -> None:
    splitter, piece, process = LineSplitter(64 << 20), b"x" * (1 << 20), psutil.Process()
    gc.collect()  # what earlier tests left must not go meanwhile
    before = process.memory_info().rss
    for _ in range(32):
        assert splitter.feed(piece) == []
    [line] = splitter.feed(b"\n")
    held = process.memory_info().rss - before
    assert isinstance(line, memoryview)
    assert len(line) >= 32 << 20
    assert held > 30 << 20
    del line
    assert process.memory_info().rss - before < held - (30 << 20)


@pytest.mark.parametrize(("size", "number"), [(300_000, 60), (2_200_000, 12)])
def test_lines_that_are_held_take_little_more_memory_than_their_size(size: int, number: int) -> None:
    splitter, process = LineSplitter(16 << 20), psutil.Process()
    piece, rest = b"x" * 50_000, size // 50_000
    before, held = process.memory_info().rss, []
    for _ in range(number):
        for _ in range(rest):
            assert splitter.feed(piece) == []
        held += splitter.feed(b"\n")
    taken = process.memory_info().rss - before
    assert len(held) == number
    assert taken < 2.2 * number * size


@pytest.mark.parametrize("at", [0, 262_140, 262_143, 262_144, 599_990])
def test_a_text_is_found_in_a_line_wherever_it_is(at: int) -> None:
    line = bytearray(b"x" * 600_000)
    line[at : at + 6] = b'"seen"'
    assert has(bytes(line), b'"seen"')
    assert has(memoryview(line), b'"seen"')
    assert not has(memoryview(line), b'"unseen"')


def test_a_large_line_grows_on_the_heap_where_the_system_promises_no_memory_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refused)
    splitter, got = LineSplitter(LIMIT), []
    for _ in range(10):
        got += splitter.feed(b"x" * 100_000)
    got += splitter.feed(b"\nnext\n")
    assert got == [b"x" * 1_000_000, b"next"]
    assert joined((b"{", b"x" * 1_000_000, b"}")) == b"{" + b"x" * 1_000_000 + b"}"


@pytest.mark.parametrize("size", [10, MAPPED_BYTES])
def test_joined_parts_are_the_same_text_whatever_their_size(size: int) -> None:
    parts = (b"{", memoryview(b"x" * size), b"}")
    assert joined(parts) == b"{" + b"x" * size + b"}"
