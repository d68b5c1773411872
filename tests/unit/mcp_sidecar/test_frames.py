import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_sidecar.core import frames
from mcp_sidecar.core.frames import Kind


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ({"id": 1, "method": "m"}, Kind.REQUEST),
        ({"id": "1", "method": "m", "params": {"a": 1}}, Kind.REQUEST),
        ({"id": 1.5, "method": "m"}, Kind.REQUEST),
        ({"method": "m"}, Kind.NOTIFICATION),
        ({"id": 1, "result": None}, Kind.RESPONSE),
        ({"id": 1, "error": {}}, Kind.RESPONSE),
    ],
)
def test_frames_are_told_apart(message: dict[str, Any], kind: Kind) -> None:
    frame = frames.parse(json.dumps({"jsonrpc": "2.0", **message}).encode())
    assert frame.kind is kind
    assert frame.failed is ("error" in message)
    if kind is not Kind.NOTIFICATION:
        assert json.loads(frame.with_id(b'"other"'))["id"] == "other"


@pytest.mark.parametrize("value", [b"%d" % frames.FIRST_OWN_ID, b'"%d"' % (frames.FIRST_OWN_ID + 5)])
def test_an_id_that_may_be_that_of_another_call_never_goes_on_to_the_server(value: bytes) -> None:
    for name in (b"id", b"\\u0069d"):
        text = b'{"jsonrpc":"2.0","id":%b,"method":"m","%b":%b}' % (value, name, value)
        assert json.loads(frames.parse(text).with_id(b"7"))["id"] == 7


def test_a_refused_frame_gives_the_id_it_had() -> None:
    with pytest.raises(frames.FrameError) as caught:
        frames.parse(b'{"jsonrpc":"2.0","id":"x","method":"m","params":[]}')
    assert (caught.value.code, caught.value.raw_id) == (frames.INVALID_PARAMS, b'"x"')


@pytest.mark.parametrize("value", [b"NaN", b"-Infinity", b"1e999", b"true", b"null", b"[1]", b"{}"])
def test_an_id_is_a_string_or_a_finite_number(value: bytes) -> None:
    with pytest.raises(frames.FrameError) as caught:
        frames.parse(b'{"jsonrpc":"2.0","id":%b,"method":"m"}' % value)
    assert (caught.value.code, caught.value.raw_id) == (frames.INVALID_REQUEST, b"null")


@given(st.binary() | st.text().map(str.encode) | st.builds(lambda m: json.dumps(m).encode(), st.dictionaries(
    st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]),
    st.none() | st.booleans() | st.integers() | st.just("2.0") | st.text() | st.just({}) | st.just([]),
)))  # fmt: skip
def test_any_bytes_are_a_frame_or_a_frame_error(data: bytes) -> None:
    try:
        frame = frames.parse(data)
    except frames.FrameError:
        return
    assert b"\n" not in frame.data


BIG = [
    (b'{"jsonrpc":"2.0","id":12,"result":{"x":1}}', 12, False),
    (b' { "id" : 12 , "jsonrpc" : "2.0" , "error" : {} } \r', 12, True),
    (b'{"result":{"id":7},"jsonrpc":"2.0","id":12}', 12, False),
    (b'{"jsonrpc":"2.0","result":{"id":7},"id":12}', 12, False),
    (b'{"result":{"id":7},"id":12,"jsonrpc":"2.0"}', 12, False),
]


@pytest.mark.parametrize(("data", "number", "failed"), BIG)
def test_a_big_answer_is_recognised_by_its_ends(data: bytes, number: int, failed: bool) -> None:
    big = frames.big_answer(data)
    assert big is not None
    assert (big.id, big.failed, data[big.start : big.end]) == (number, failed, b"%d" % number)


@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","method":"m","result":{},"id":1}',
        b'{"jsonrpc":"2.0","id":1,"method":"m"}',
        b'{"jsonrpc":"2.0","id":"1","result":{}}',
        b'{"result":{"id":7,"jsonrpc":"2.0"}}',
        b'{"result":"},\\"id\\":1}"}',
        b'{"jsonrpc":"2.0","id":1,"result":{',
        b'{"jsonrpc":"2.0","id":1,"result":{}} garbage}',
        b'{"jsonrpc":"2.0","id":1,"result":{} , garbage }',
        b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"result":{}}',
        b'{"result":{},"id":' + b"9" * 5000 + b"}",
        b"banner",
    ],
)
def test_what_might_be_something_else_is_left_to_the_parser(data: bytes) -> None:
    assert frames.big_answer(data) is None


@pytest.mark.parametrize(
    ("head", "tail", "number"),
    [
        (b'{"jsonrpc":"2.0","id":3,"result":{"aaa', b"", 3),
        (b'{"jsonrpc":"2.0","id":3,"result":{"aaa', b'a"},"id":4}', 3),
        (b'{"result":{"aaa', b'aaa"}]},"jsonrpc":"2.0","id":3}', 3),
        (b'{"jsonrpc":"2.0","result":{"aaa', b'aaa"}]},"id":3}', 3),
        (b'{"error":{"aaa', b'aaa"},"id":3,"jsonrpc":"2.0"} \r', 3),
        (b'{"result":{"aaa', b'aaa"}]},\\"id\\":3}"}', None),
        (b'{"method":"m","params":{"aaa', b'aaa"},"jsonrpc":"2.0","id":3}', None),
        (b'{"result":"aaa', b"aaa", None),
        (b'{"id":3', b"", None),
        (b'{"jsonrpc":"2.0","id":3,"method":"sampling/createMessage","params":{"aaa', b"", None),
        (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"result":{', b"", None),
        (b"", b"", None),
    ],
)
def test_the_id_of_a_dropped_answer_is_read_from_its_ends(
    head: bytes, tail: bytes, number: int | None
) -> None:
    assert frames.answer_id(head, tail) == number


@pytest.mark.parametrize(
    ("value", "number"),
    [(5, 5), ("5", 5), ("x", None), (True, None), (None, None), (5.0, None), ("9" * 30, None), ("٣", None)],
)
def test_ids_come_back_as_numbers_or_as_their_text(value: Any, number: int | None) -> None:
    assert frames.own_id(value) == number


def test_an_event_has_no_line_end_of_its_own() -> None:
    assert frames.event_text(b'{"a":\r1}') == b'{"a": 1}'


def test_the_relays_own_frames_are_json_rpc() -> None:
    assert json.loads(frames.error(b'"a"', -1, "é", {"b": None})) == {
        "jsonrpc": "2.0",
        "id": "a",
        "error": {"code": -1, "message": "é", "data": {"b": None}},
    }
    assert json.loads(frames.result(b"1")) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert json.loads(frames.request(1, "m", {})) == {"jsonrpc": "2.0", "id": 1, "method": "m", "params": {}}
    assert json.loads(frames.notification("n")) == {"jsonrpc": "2.0", "method": "n"}
    assert "JSON" in frames.message(b"{broken")["unusable"]
