import asyncio
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaykit.wirepeer import LIMIT, Peer, Seen, chunked, request

STREAM = request(b"one") + chunked(b"tw", b"o", path=b"/x") + request(method=b"GET") + request(b"four")
SEEN = [
    (b"POST", b"/", b"one"),
    (b"POST", b"/x", b"two"),
    (b"GET", b"/", b""),
    (b"POST", b"/", b"four"),
]


async def test_requests_cut_at_any_place_are_the_same_requests() -> None:
    for place in range(len(STREAM) + 1):
        peer = Peer()
        await peer.send(STREAM, [place])
        assert peer.application.seen == SEEN, place
        assert peer.statuses == [200] * 4
        assert re.findall(rb"\r\n\r\n(one|two|-|four)", peer.transport.written) == [
            b"one",
            b"two",
            b"-",
            b"four",
        ]
        assert not peer.transport.closed


async def test_requests_may_come_byte_by_byte() -> None:
    peer = Peer()
    await peer.send(STREAM, range(len(STREAM)))
    assert peer.application.seen == SEEN


async def test_a_head_that_comes_again_brings_its_own_body() -> None:
    peer = Peer()
    for body in (b"one", b"two", b"", b"six", b"seven", b"eight"):
        await peer.send(request(body))
    await peer.send(request(b"abc") + request(b"def"))
    await peer.send(request(b"ghi"), [len(request(b"ghi")) - 1])
    assert [body for _, _, body in peer.application.seen] == [
        b"one", b"two", b"", b"six", b"seven", b"eight", b"abc", b"def", b"ghi",
    ]  # fmt: skip


async def test_a_head_among_others_is_not_taken_for_one_of_them() -> None:
    peer = Peer()
    for path in (b"/x", b"/y", b"/no"):
        await peer.send(request(b"one", b"/x") + request(b"two", b"/y"))
        await peer.send(request(b"one", b"/no") + request(b"two", b"/y"))
        await peer.send(request(b"six", path))
    assert [path for _, path, body in peer.application.seen if body == b"six"] == [b"/x", b"/y"]


async def test_a_refused_head_is_refused_again() -> None:
    peer = Peer()
    for _ in range(3):
        await peer.send(request(b"one", path=b"/no"))
        await peer.send(request(b"one"))
    assert peer.statuses == [403, 200] * 3


async def test_line_ends_before_a_request_are_ignored() -> None:
    peer = Peer()
    for _ in range(3):
        await peer.send(b"\r\n\r\n" + request(b"one"))
    assert [body for _, _, body in peer.application.seen] == [b"one"] * 3


POST = b"POST / HTTP/1.1\r\nhost: a\r\n"
MALFORMED = {
    "both framings": request(b"hi", b"/", b"POST", b"transfer-encoding: chunked"),
    "both framings, turned": POST + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n",
    "two lengths": request(b"hi", b"/", b"POST", b"content-length: 2"),
    "two different lengths": request(b"hi", b"/", b"POST", b"content-length: 3"),
    "a list of lengths": POST + b"content-length: 2, 2\r\n\r\nhi",
    "a length with a sign": POST + b"content-length: +2\r\n\r\nhi",
    "an endless length": POST + b"content-length: 99999999999999999999\r\n\r\nhi",
    "an unknown coding": POST + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a coding that is none": POST + b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    "two codings": POST + b"transfer-encoding: identity\r\ntransfer-encoding: chunked\r\n\r\n",
    "chunks for HTTP/1.0": b"POST / HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "a chunk with a wrong size": chunked(b"hi").replace(b"2\r\nhi", b"2x\r\nhi"),
    "a chunk longer than it says": chunked(b"hi").replace(b"hi", b"hixx"),
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": request(b"hi", b"/", b"POST", b"host: b"),
    "two tokens": request(b"hi", b"/", b"POST", b"authorization: a", b"authorization: a"),
    "a bare line feed": b"GET / HTTP/1.1\nhost: a\n\n",
    "a folded line": request(b"hi", b"/", b"POST", b"x: a\r\n b"),
    "a space before the colon": request(b"hi", b"/", b"POST", b"x : a"),
    "a space in a name": request(b"hi", b"/", b"POST", b"x y: a"),
    "a name that is none": request(b"hi", b"/", b"POST", b": a"),
    "a byte that is no letter in a name": request(b"hi", b"/", b"POST", b"x\xe9: a"),
    "a NUL in a value": request(b"hi", b"/", b"POST", b"x: a\0b"),
    "a carriage return in a value": request(b"hi", b"/", b"POST", b"x: a\rb"),
    "a fragment": request(b"hi", b"/#x"),
    "a target with a control character": request(b"hi", b"/\x01"),
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED.keys())
async def test_a_malformed_request_ends_the_connection_and_nothing_behind_it_is_served(data: bytes) -> None:
    for cuts in ((), range(len(data))):
        peer = Peer()
        await peer.send(request(b"before"))
        await peer.send(data + request(b"behind"), cuts)
        assert [body for _, _, body in peer.application.seen] == [b"before"]
        assert peer.statuses in ([200, 400], [200, 405])
        assert peer.transport.written.count(b"connection: close") == 1
        assert peer.transport.closed == "after the reply"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/2.0\r\nhost: a\r\n\r\n", 505),
        (b"GET /\r\n\r\n", 505),
        (b"FOO / HTTP/1.1\r\nhost: a\r\n\r\n", 405),
        (b"CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n", 405),
        (request(b"", b"/", b"POST", b"expect: something"), 417),
        (request(b"", b"/", b"POST", *[b"x%d: y" % n for n in range(101)]), 431),
        (request(b"", b"/", b"POST", b"x: " + b"y" * 33_000), 431),
        (request(b"", b"/" + b"y" * 33_000), 431),
        (request(b"", b"/", b"POST", *[b"accept: " + b"y" * 500] * 70), 431),
        (request(b"x" * (LIMIT + 1)), 413),
        (chunked(*[b"x" * 100] * 11), 413),
    ],
)
async def test_what_is_too_large_or_not_supported_gets_the_status_that_says_so(
    data: bytes, status: int
) -> None:
    for cuts in ((), range(0, len(data), 97)):
        peer = Peer()
        await peer.send(data + request(b"behind"), cuts)
        assert peer.application.seen == []
        assert peer.statuses == [status]
        assert peer.transport.closed == "after the reply"


async def test_a_header_without_end_is_refused_before_it_costs_memory() -> None:
    peer = Peer()
    peer.connection.data_received(b"POST / HTTP/1.1\r\nx: ")
    sent = 0
    while not peer.transport.closed:
        peer.connection.data_received(b"y" * 1000)
        sent += 1000
        assert sent < 40_000
    assert peer.statuses == [431]


async def test_a_large_body_behind_a_small_head_in_one_piece_is_no_large_head() -> None:
    peer = Peer()
    peer.application.body_limit = 10**6
    data = request(b"z" * 200_000)
    await peer.send(data, [10])
    await peer.send(request(b"z" * 200_000) + data[:10])
    await peer.send(data[10:])
    assert peer.statuses == [200] * 3


async def test_a_body_that_is_announced_too_large_is_refused_before_it_comes() -> None:
    peer = Peer()
    await peer.send(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1001\r\n\r\n")
    assert peer.statuses == [413]
    peer.connection.data_received(b"x" * 1001)
    assert peer.statuses == [413]


async def test_a_refused_request_with_a_small_body_leaves_the_connection_usable() -> None:
    peer = Peer()
    await peer.send(request(b"secret", path=b"/no") + request(b"next"))
    assert peer.statuses == [403, 200]


async def test_a_refused_request_with_a_large_body_is_answered_before_its_body() -> None:
    for head in (
        b"content-length: 70000",
        b"transfer-encoding: chunked",
        b"content-length: 9\r\nexpect: 100-continue",
    ):
        peer = Peer()
        await peer.send(b"POST /no HTTP/1.1\r\nhost: a\r\n" + head + b"\r\n\r\n")
        assert peer.statuses == [403]
        assert peer.transport.closed == "after the reply"


async def test_a_client_that_waits_for_the_word_to_continue_gets_it() -> None:
    peer = Peer()
    for body in (b"body", b"again"):
        head, _ = request(body, b"/", b"POST", b"expect: 100-continue").split(b"\r\n\r\n")
        await peer.send(head + b"\r\n\r\n")
        assert peer.transport.written.endswith(b"HTTP/1.1 100 Continue\r\n\r\n")
        await peer.send(body)
        assert peer.transport.written.endswith(body)
    assert peer.statuses == [100, 200] * 2


async def test_an_offered_protocol_is_declined_and_the_request_served() -> None:
    offer = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABkAARAAAAA")
    data = request(b"body", b"/", b"POST", *offer) + request(b"next")
    for cuts in ((), range(len(data))):
        peer = Peer()
        await peer.send(data, cuts)
        assert [body for _, _, body in peer.application.seen] == [b"body", b"next"]
        assert peer.statuses == [200, 200]


async def test_trailers_are_no_headers() -> None:
    peer = Peer()
    await peer.send(chunked(b"x").replace(b"0\r\n\r\n", b"0\r\nhost: evil\r\nauthorization: b\r\n\r\n") * 2)
    assert peer.statuses == [200, 200]


bodies = st.binary(max_size=40)
single = st.one_of(
    st.tuples(bodies, st.sampled_from([b"/", b"/x", b"/no"])).map(
        lambda drawn: (request(drawn[0], drawn[1]), (b"POST", drawn[1], drawn[0]))
    ),
    st.lists(bodies.filter(bool), max_size=4).map(
        lambda parts: (chunked(*parts), (b"POST", b"/", b"".join(parts)))
    ),
    st.just((request(method=b"GET"), (b"GET", b"/", b""))),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(single, min_size=1, max_size=6), st.data())
def test_any_stream_cut_anywhere_gives_the_same_requests_and_replies(
    drawn: list[tuple[bytes, Seen]], data: st.DataObject
) -> None:
    stream = b"".join(text for text, _ in drawn)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=12))

    async def scenario() -> None:
        peer = Peer()
        await peer.send(stream, cuts)
        assert peer.application.seen == [seen for _, seen in drawn if seen[1] != b"/no"]
        assert peer.statuses == [403 if seen[1] == b"/no" else 200 for _, seen in drawn]
        assert peer.transport.reading
        assert not peer.transport.closed

    asyncio.run(scenario())


@settings(max_examples=300, deadline=None)
@given(st.lists(single, min_size=1, max_size=3), st.data())
def test_any_damage_is_answered_or_waited_out_and_never_a_defect(
    drawn: list[tuple[bytes, Seen]], data: st.DataObject
) -> None:
    stream = b"".join(text for text, _ in drawn)
    place = data.draw(st.integers(0, len(stream)))
    junk = data.draw(
        st.binary(max_size=6) | st.sampled_from([b"\r\n", b"\n", b":", b" ", b"\0", b"0\r\n\r\n"])
    )
    width = data.draw(st.integers(0, 4))
    damaged = stream[:place] + junk + stream[place + width :]
    cuts = data.draw(st.lists(st.integers(0, len(damaged)), max_size=6))

    async def scenario() -> None:
        whole, cut = Peer(), Peer()
        await whole.send(damaged)
        await cut.send(damaged, cuts)
        assert cut.application.seen == whole.application.seen
        assert cut.statuses == whole.statuses
        assert (cut.transport.closed, whole.transport.closed) in (("", ""), ("after the reply",) * 2)

    asyncio.run(scenario())
