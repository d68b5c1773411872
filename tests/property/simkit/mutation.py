"""Inputs that nearly make sense: valid ones, damaged, cut, joined and repeated."""

import random
from collections.abc import Iterator, Sequence

Chance = random.Random
_JUNK = (
    *(
        b"\0",
        b"\n",
        b"\r\n",
        b"\r",
        b" ",
        b"\t",
        b":",
        b'"',
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b"-",
        b"\x0b",
    ),
    *(b"null", b"\xff", b"\xc3", b"\xe2\x80\xa8", b"\\ud800", b'"id":1', b'"method":"ping"', b"NaN", b"true"),
    *(b"1e400", b"1.0", b"+5", b"0x10", b"9" * 30, b"[" * 2000, b'{"a":' * 2000, b"\x7f"),
    *(b"0\r\n\r\n", b";x=y", b"chunked", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n"),
)


def mutated(chance: Chance, seeds: Sequence[bytes], junk: Sequence[bytes] = _JUNK) -> bytes:
    """One input made of one or two seeds."""
    data = chance.choice(seeds)
    if chance.random() < 0.1:
        data += chance.choice(seeds)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 4))):
        place, width = chance.randint(0, len(data)), chance.choice((0, 0, 1, 2, 8, 40))
        data = data[:place] + _piece(chance, data, junk) + data[place + width :]
    return data


def _piece(chance: Chance, data: bytes, junk: Sequence[bytes]) -> bytes:
    kind = chance.randrange(4)
    if kind == 0:
        return chance.choice(junk)
    if kind == 1:
        return chance.randbytes(chance.choice((1, 1, 2, 5)))
    if kind == 2 and data:
        start = chance.randrange(len(data))
        return data[start : start + chance.choice((1, 4, 20, 100))]
    return b""


def pieces(chance: Chance, data: bytes) -> Iterator[bytes]:
    """The same bytes as a network may bring them."""
    if len(data) > 4000 or chance.random() < 0.5:
        yield data
        return
    while data:
        size = chance.choice((1, 1, 2, 3, 7, 20, 200))
        yield data[:size]
        data = data[size:]
