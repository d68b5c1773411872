import json
from typing import Any

import pytest

from mcp_sidecar.core import frames, tracing

ID = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{ID}-b7ad6b7169203331-01"
HEADERS = {b"traceparent": PARENT.encode(), b"tracestate": b"vendor=a,other=b"}
CARRIED = {"traceparent": PARENT, "tracestate": "vendor=a,other=b"}


@pytest.mark.parametrize(
    ("parent", "found"),
    [
        (PARENT, ID),
        (PARENT.encode(), ID),
        (f"cc-{ID}-b7ad6b7169203331-01-what-comes-later", ID),
        (f"00-{ID}-b7ad6b7169203331-01-more", ""),
        (f"ff-{ID}-b7ad6b7169203331-01", ""),
        (f"00-{'0' * 32}-b7ad6b7169203331-01", ""),
        (f"00-{ID}-{'0' * 16}-01", ""),
        (f"00-{ID.upper()}-b7ad6b7169203331-01", ""),
        (f"{PARENT}, {PARENT}", ""),
        (f"{PARENT}\n", ""),
        (f"cc-{ID}-b7ad6b7169203331-01-{'x' * 200}", ""),
        ("", ""),
        (b"\xff\xfe", ""),
        (7, ""),
        (None, ""),
    ],
)
def test_only_a_valid_traceparent_has_a_trace_id(parent: object, found: str) -> None:
    assert tracing.trace_id(parent) == found


def carried(text: str, headers: dict[bytes, bytes] = HEADERS) -> Any:
    frame = frames.parse(text.encode())
    data = tracing.carried(frame.data, frame.params, headers)
    again = frames.parse(data)
    assert again.raw_id == frame.raw_id
    return json.loads(data)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ('{"jsonrpc":"2.0","id":1,"method":"ping"}', {"_meta": CARRIED}),
        ('{"jsonrpc":"2.0","id":1,"method":"ping","params":{ }}', {"_meta": CARRIED}),
        ('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1}}', {"_meta": CARRIED, "a": 1}),
        ('{"params":{"_meta":{}},"jsonrpc":"2.0","method":"x","id":"é"}', {"_meta": CARRIED}),
        (
            '{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"progressToken":7},"b":2}}',
            {"_meta": {**CARRIED, "progressToken": 7}, "b": 2},
        ),
    ],
)
def test_the_context_of_the_headers_goes_into_meta(given: str, wanted: Any) -> None:
    assert carried(given)["params"] == wanted


@pytest.mark.parametrize(
    "meta",
    ['{"traceparent":"of its own"}', '{"tracestate":"a=b"}', "[]", "null", '"text"'],
)
def test_what_a_request_says_itself_stays(meta: str) -> None:
    text = f'{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"_meta":{meta}}}}}'
    assert carried(text) == json.loads(text)


def test_headers_without_valid_context_change_nothing_and_a_bad_state_is_left_out() -> None:
    text = '{"jsonrpc":"2.0","id":1,"method":"x","params":{}}'
    assert carried(text, {}) == json.loads(text)
    assert carried(text, {b"traceparent": b"00-zz", b"tracestate": b"a=b"}) == json.loads(text)
    for state in (b"", b"\x1b[31m", b"a" * 513):
        headers = {b"traceparent": PARENT.encode(), b"tracestate": state}
        assert carried(text, headers)["params"] == {"_meta": {"traceparent": PARENT}}


def test_the_trace_that_a_request_names_is_found() -> None:
    assert tracing.said({"_meta": {"traceparent": PARENT}}) == ID
    assert tracing.said({"_meta": {"traceparent": 5}}) == ""
    assert tracing.said({"_meta": []}) == ""
    assert tracing.said({}) == ""
