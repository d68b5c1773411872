import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from mcp_sidecar.core.lines import HEAD_BYTES, TAIL_BYTES, Line, LineSplitter, Oversized


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
