"""Frames of clients that two parsers could read in two ways."""

import pytest

from mcp_sidecar.core import frames, jsontext, readings

CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'


@pytest.mark.parametrize(
    "text",
    [
        CALL + b'{"name":"no","name":"ok"}}',
        CALL + b'{"name":"ok","Name":"no"}}',
        CALL + b'{"n\\u0061me":"no","name":"ok"}}',
        CALL + b'{"Name":"no"}}',
        CALL + b'{"name":"ok","_Meta":{"progressToken":1}}}',
        CALL + b'{"name":"ok","_meta":{"progressToken":1,"ProgressToken":4294967299}}}',
        CALL + b'{"name":"ok","_meta":{"progressToken":4294967299,"progressToken":1}}}',
        CALL + b'{"name":"ok","_meta":{"progre\xc5\xbf\xc5\xbfToken":4294967299}}}',  # long s
        CALL + b'{"name":"no"},"params":{"name":"ok"}}',
        CALL + b'{"name":"ok"},"ID":4294967299}',
        CALL + b'{"name":"ok"},"id":4294967299}',
        CALL + b'{"name":"ok"},"\\u0069d":4294967299}',
        CALL + b'{"name":"ok","arguments":{"a":"b"}},"id" :4294967299}',
        CALL + b'{"name" :"no","name":"ok","arguments":{"\\u003a":"\\u003a"}}}',
        CALL + b'{"name":"ok"},"\\u0049D":4294967299}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","Params":{"name":"no"},"params":{"name":"ok"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"no"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping","params":{"name":"no"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null,"params":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":null}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"RequestId":4294967299}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4294967299,"requestId":1}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","Method":"tools/call","ID":77,"params":{"requestId":1}}',
        b'{"jsonrpc":"2.0","method":"notifications/progress","METHOD":"tools/call","ID":1}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:b","URI":"a:c"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error","level":"debug"}}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"Method":"tools/call"}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"id":2}',
        b'{"jsonrpc":"2.0","id":1,"result":{"action":"decline"},"result":{"action":"accept"}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1},"error":{"code":2}}',
        b'{"jsonrpc":"1.0","id":1,"method":"ping","jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a:secret","uri":"a:public"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"Name":"secret","name":"public"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tasks/cancel","params":{"taskId":"a","taskid":"b"}}',
    ],
)
def test_what_another_parser_could_read_as_something_else_is_refused(text: bytes) -> None:
    assert frames.parse(text)
    with pytest.raises(frames.FrameError, match="ambiguous member names") as raised:
        readings.parse(text)
    assert raised.value.code == frames.INVALID_REQUEST


@pytest.mark.parametrize(
    "text",
    [
        CALL + b'{"name":"a","arguments":{"x":1,"X":2,"name":"b","Name":"c","id":3,"ID":4,"method":{}}}}',
        CALL + b'{"name":"a","arguments":{"id":1,"id":2,"params":"\\u0069\\u0064"}}}',
        CALL + b'{"name":"a","_meta":{"progressToken":"\\u0041","vendor/x":{"progressToken":1,"ID":1}}}}',
        CALL + b'{"name":"a","Vendor":1,"vendor":2},"Extra":{"id":5}}',
        b'{"jsonrpc":"2.0","id":"z","method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"vendor/x","params":{"Name":"a","name":"b","URI":1}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"id":1,"ID":2,"method":"m"}}',
    ],
)
def test_what_the_relay_only_passes_on_may_have_any_names(text: bytes) -> None:
    assert readings.parse(text) == frames.parse(text)


def test_a_refusal_has_the_id_of_the_request() -> None:
    with pytest.raises(frames.FrameError) as raised:
        readings.parse(b'{"jsonrpc":"2.0","id":"z","method":"tools/call","params":{"Name":"a"}}')
    assert raised.value.raw_id == b'"z"'


@pytest.mark.parametrize(("depth", "fits"), [(509, True), (512, False), (700, False)])
def test_what_nests_so_deeply_that_it_could_not_be_parsed_again_is_refused(depth: int, fits: bool) -> None:
    lists = b"[" * depth + b"]" * depth
    nested = b'{"name":"a","arguments":{"a":%b},"_meta":{"progressToken":1}}}' % lists
    if fits:
        assert readings.parse(CALL + nested).params["name"] == "a"
        return
    with pytest.raises(frames.FrameError, match="nested more than 512 deep") as raised:
        readings.parse(CALL + nested)
    assert raised.value.code == frames.PARSE_ERROR


def test_members_that_stand_twice_are_found_at_any_depth() -> None:
    assert not jsontext.repeats(b'{"a":{"a":[{"a":1},{"a":2}]},"b":"a"}')
    assert jsontext.repeats(b'{"a":[{"b":1,"\\u0062":2}]}')


def test_the_outline_of_a_text_ends_where_the_path_does() -> None:
    text = b' { "a" : 1, "p": {"x":[{}], "p": {"y": 1, "y": 2}} , "a":2 } '
    assert jsontext.outline(text, "p", "p") == [["a", "p", "a"], ["x", "p"], ["y", "y"]]
    assert jsontext.outline(text, "a", "p") == [["a", "p", "a"]]
    assert jsontext.outline(text, "z") == [["a", "p", "a"]]
    assert jsontext.outline(b"[]", "z") == []
