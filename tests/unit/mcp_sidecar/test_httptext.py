import pytest

from mcp_sidecar.core import httptext
from mcp_sidecar.core.httptext import HeadError, Reply

HOST = {b"host": b"demo:8080"}


def test_a_target_is_cut_into_path_and_query() -> None:
    head = httptext.head(b"GET", b"/mcp?a=1?b", "1.1", dict(HOST))
    assert (head.path, head.query, head.length) == (b"/mcp", b"a=1?b", 0)


@pytest.mark.parametrize(
    ("url", "host", "path"),
    [
        (b"http://other:1/mcp", b"other:1", b"/mcp"),
        (b"HTTP://other/mcp", b"other", b"/mcp"),
        (b"http://other", b"other", b"/"),
        (b"*", b"demo:8080", b"*"),
    ],
)
def test_the_authority_of_an_absolute_target_is_the_host(url: bytes, host: bytes, path: bytes) -> None:
    head = httptext.head(b"GET", url, "1.1", dict(HOST))
    assert (head.headers[b"host"], head.path) == (host, path)


@pytest.mark.parametrize(
    ("url", "version", "headers", "status"),
    [
        (b"/mcp", "1.1", {}, 400),
        (b"http://demo/mcp", "1.1", {}, 400),
        (b"/mcp#x", "1.1", HOST, 400),
        (b"http:///mcp", "1.1", HOST, 400),
        (b"http://demo@evil/mcp", "1.1", HOST, 400),
        (b"/mcp", "0.9", HOST, 505),
        (b"/mcp", "2.0", HOST, 505),
        (b"/mcp", "1.1", {**HOST, b"transfer-encoding": b"gzip, chunked"}, 400),
        (b"/mcp", "1.1", {**HOST, b"transfer-encoding": b"identity"}, 400),
        (b"/mcp", "1.0", {**HOST, b"transfer-encoding": b"chunked"}, 400),
        (b"/mcp", "1.1", {**HOST, b"expect": b"200-ok"}, 417),
    ],
)
def test_heads_that_two_readers_could_understand_differently_are_refused(
    url: bytes, version: str, headers: httptext.Headers, status: int
) -> None:
    with pytest.raises(HeadError) as refused:
        httptext.head(b"POST", url, version, dict(headers))
    assert refused.value.status == status


def test_the_size_of_a_body_in_chunks_is_unknown() -> None:
    headers = {**HOST, b"transfer-encoding": b"Chunked", b"expect": b"100-Continue"}
    head = httptext.head(b"POST", b"/mcp", "1.1", headers)
    assert head.length is None
    assert head.awaits_continue


@pytest.mark.parametrize("name", [b"authorization", b"host", b"mcp-session-id", b"origin", b"content-type"])
def test_what_decisions_rest_on_may_come_only_once(name: bytes) -> None:
    with pytest.raises(HeadError, match=name.decode()):
        httptext.repeated(name, b"a", b"a")


def test_lists_may_come_in_several_headers() -> None:
    assert httptext.repeated(b"accept", b"a", b"b") == b"a, b"


def test_a_reply_says_what_it_brings() -> None:
    reply = Reply(404, b"{}", [(b"x", b"y")])
    head = b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\nx: y\r\ncontent-type: application/json\r\n"
    assert httptext.whole(reply, close=False) == head + b"\r\n{}"
    assert httptext.whole(reply, close=True, bodiless=True) == head + b"connection: close\r\n\r\n"


def test_a_reply_may_have_a_type_of_its_own_or_no_body() -> None:
    assert httptext.whole(Reply(200, b"x", [(b"content-type", b"text/plain")]), close=False).endswith(
        b"content-length: 1\r\ncontent-type: text/plain\r\n\r\nx"
    )
    assert httptext.whole(Reply(202), close=False) == b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"


def test_the_frequent_reply_is_the_same_as_any_other() -> None:
    frequent = httptext.json_reply(b"{}").split(b"\r\n")
    assert sorted(frequent) == sorted(httptext.whole(Reply(200, b"{}"), close=False).split(b"\r\n"))


def test_a_chunk_has_its_size_in_hexadecimal() -> None:
    assert httptext.chunk(b"x" * 26) == b"1a\r\n" + b"x" * 26 + b"\r\n"
    assert httptext.chunk(memoryview(b"abc")) == b"3\r\nabc\r\n"
