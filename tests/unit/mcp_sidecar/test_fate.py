"""What an answer of a remote server means, as a table."""

import json

import pytest

from mcp_sidecar.core.fate import Fate, Said, error_of, judge, retry_after

CALL, LIST, PING = "tools/call", "tools/list", "ping"
LOST = Said(-32001, "Session not found")


@pytest.mark.parametrize(
    ("status", "method", "said", "fate"),
    [
        (200, CALL, None, Fate.ANSWER),
        (202, CALL, None, Fate.ANSWER),
        (200, CALL, Said(-32602, "Unknown tool"), Fate.ANSWER),
        (200, CALL, Said(-32000, "The database is locked"), Fate.ANSWER),
        (200, CALL, Said(-32001, "Request timed out"), Fate.ANSWER),
        (200, CALL, Said(-32602, "Session not found"), Fate.ANSWER),
        (200, LIST, LOST, Fate.RENEW),
        (200, LIST, Said(-32000, "session terminated"), Fate.RENEW),
        (200, PING, Said(-32000, "Session has expired"), Fate.RENEW),
        (200, PING, Said(-32000, "Connection closed"), Fate.LOST),
        (200, CALL, LOST, Fate.RENEW),
        (200, CALL, Said(-32000, "Session not found. Please reinitialize."), Fate.RENEW),
        (200, CALL, Said(-32000, "Session has been terminated"), Fate.RENEW),
        (200, CALL, Said(-32000, "Session expired, log in to the shop again"), Fate.DOUBTED),
        (200, CALL, Said(-32000, "Browser session 17 not found"), Fate.DOUBTED),
        (200, CALL, Said(-32000, "Connection closed"), Fate.DOUBTED),
        (404, CALL, None, Fate.RENEW),
        (404, CALL, Said(-32000, "whatever"), Fate.RENEW),
        (400, CALL, Said(-32000, "Bad Request: No valid session ID provided"), Fate.RENEW),
        (400, CALL, Said(-32000, "Bad Request: Server not initialized"), Fate.RENEW),
        (400, CALL, Said(-32000, "Connection closed"), Fate.RENEW),
        (410, CALL, Said(-32600, "Session has been terminated"), Fate.RENEW),
        (400, CALL, Said(-32602, "Invalid params"), Fate.REFUSED),
        (400, CALL, None, Fate.REFUSED),
        (401, CALL, None, Fate.DENIED),
        (401, CALL, LOST, Fate.DENIED),
        (403, CALL, None, Fate.REFUSED),
        (405, CALL, None, Fate.REFUSED),
        (422, CALL, None, Fate.REFUSED),
        (429, CALL, None, Fate.LATER),
        (503, CALL, None, Fate.LATER),
        (500, CALL, None, Fate.UNKNOWN),
        (502, CALL, None, Fate.UNKNOWN),
        (504, CALL, LOST, Fate.UNKNOWN),
        (500, LIST, None, Fate.LATER),
        (502, PING, None, Fate.LATER),
        (302, CALL, None, Fate.REDIRECT),
        (308, CALL, None, Fate.REDIRECT),
        (303, CALL, None, Fate.REFUSED),
    ],
)
def test_an_answer_within_a_session(status: int, method: str, said: Said | None, fate: Fate) -> None:
    assert judge(status, method, said, in_session=True, handshake=False) is fate


@pytest.mark.parametrize(
    ("status", "said", "fate"),
    [
        (200, None, Fate.ANSWER),
        (200, Said(-32000, "Connection closed"), Fate.ANSWER),
        (400, None, Fate.FALL_BACK),
        (404, None, Fate.FALL_BACK),
        (405, None, Fate.FALL_BACK),
        (404, Said(-32601, "Method not found"), Fate.ANSWER),
        (400, Said(-32022, "Unsupported protocol version"), Fate.ANSWER),
        (401, None, Fate.DENIED),
        (403, None, Fate.DENIED),
        (410, None, Fate.REFUSED),
        (429, None, Fate.LATER),
        (502, None, Fate.LATER),
        (307, None, Fate.REDIRECT),
    ],
)
def test_an_answer_to_a_handshake(status: int, said: Said | None, fate: Fate) -> None:
    assert judge(status, "initialize", said, in_session=False, handshake=True) is fate


def test_a_server_without_sessions_cannot_lose_one() -> None:
    assert judge(404, CALL, None, in_session=False, handshake=False) is Fate.REFUSED
    assert judge(200, CALL, LOST, in_session=False, handshake=False) is Fate.ANSWER


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "m"}}, Said(-32001, "m")),
        ({"jsonrpc": "2.0", "error": {"code": 1}}, Said(1, "None")),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, None),
        ({"error": "unauthorized"}, None),
        ({"jsonrpc": "2.0", "error": "text"}, None),
        ([], None),
    ],
)
def test_only_a_json_rpc_error_says_something(body: object, said: Said | None) -> None:
    assert error_of(json.dumps(body).encode()) == said
    assert error_of(b"<html>") is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 60.0),
        ("soon", None),
        ("-1", None),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        ("", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str, seconds: float | None) -> None:
    assert retry_after(value, 40.0) == seconds
