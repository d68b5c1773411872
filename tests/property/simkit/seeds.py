"""What proper peers send."""

import json


def _rpc(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}, ensure_ascii=False).encode()


CLIENT_MESSAGES = (
    _rpc(id=1, method="tools/call", params={"name": "echo", "arguments": {"text": "é漢", "n": 1.0}}),
    _rpc(id="1", method="tools/call", params={"name": "x", "_meta": {"progressToken": 7}, "arguments": {}}),
    b'{"params":{"name":"echo","arguments":{"id":5}},"method":"tools/call","id":"last","jsonrpc":"2.0"}',
    _rpc(id=2, method="tools/list"),
    _rpc(id=3, method="ping", params=None),
    _rpc(id=4, method="logging/setLevel", params={"level": "debug"}),
    _rpc(id=5, method="resources/subscribe", params={"uri": "file://a"}),
    _rpc(id=6, method="resources/unsubscribe", params={"uri": "file://a"}),
    _rpc(id=0, method="initialize", params={"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}}),
    _rpc(method="notifications/initialized"),
    _rpc(method="notifications/cancelled", params={"requestId": 1, "reason": "no"}),
    _rpc(method="notifications/progress", params={"progressToken": 1, "progress": 1}),
    _rpc(id=4294967297, result={"roots": []}),
    _rpc(id=4294967297, error={"code": -1, "message": "no"}),
)
SERVER_LINES = (
    *(b'{"jsonrpc":"2.0","id":NUMBER,"result":{"content":[]}}',) * 2,
    b'{"jsonrpc":"2.0","id":"NUMBER","error":{"code":-32000,"message":"no","data":null}}',
    b'{"result":{"id":1},"jsonrpc":"2.0","id":NUMBER}',
    b'{"jsonrpc":"2.0","id":NUMBER,"result":{"big":"' + b"y" * 70_000 + b'"}}',
    _rpc(method="notifications/progress", params={"progressToken": 4294967299, "progress": 0.5}),
    _rpc(method="notifications/message", params={"level": "info", "data": "x"}),
    _rpc(method="notifications/tools/list_changed"),
    _rpc(method="notifications/resources/updated", params={"uri": "file://a"}),
    _rpc(method="notifications/cancelled", params={"requestId": "q"}),
    _rpc(id="q", method="sampling/createMessage", params={"messages": []}),
    _rpc(id=1, method="roots/list"),
    _rpc(id=1, method="ping"),
    _rpc(method="vendor/news", params={}),
    b"Starting the server ...",
)
CONTROL_LINES = (
    b'\0{"event":"oversized","bytes":99999999,"head":"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":NUMBER,","tail":"}"}',
    b'\0{"event":"masked","id":1,"texts":["a"]}',
    b'\0{"event":"hello","version":1,"incarnation":"process-1","pid":17,"startTime":1764471000.5}',
    b'\0{"event":"exit","exitCode":137,"signal":"SIGKILL","reason":"Signaled","message":"","time":1764471000.5}',
    b'\0{"event":"stdout-closed"}',
    b'\0{"event":"stdin-closed"}',
    b'\0{"event":"terminating","drainSeconds":6}',
    b'\0{"event":"news"}',
)

_FIELDS = (
    b"Host: localhost\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
)


def requests(sid: bytes) -> tuple[bytes, ...]:
    """HTTP requests as clients with this session send them."""
    session = _FIELDS + b"Mcp-Session-Id: " + sid + b"\r\n"
    posts = tuple(
        b"POST /mcp HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n%b" % (session, len(body), body)
        for body in CLIENT_MESSAGES
    )
    body = CLIENT_MESSAGES[3]
    chunks = b"%x\r\n%b\r\n5;x=y\r\nfghij\r\n0\r\n\r\n" % (len(body), body)
    return (
        *posts,
        b"POST /mcp HTTP/1.1\r\n%bTransfer-Encoding: chunked\r\n\r\n%b" % (session, chunks),
        b"POST /mcp HTTP/1.1\r\n%bTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: y\r\n\r\n" % session,
        b"POST /mcp HTTP/1.0\r\n%bContent-Length: 2\r\n\r\n{}" % session,
        b"POST /mcp HTTP/1.1\r\n%bExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}" % session,
        b"GET /mcp HTTP/1.1\r\n%bConnection: close\r\n\r\n" % session,
        b"GET /mcp HTTP/1.1\r\n%b\r\n" % session,
        b"DELETE /mcp HTTP/1.1\r\n%bContent-Length: 0\r\n\r\n" % _FIELDS,
        b"POST http://localhost/mcp?x=y HTTP/1.1\r\n%bContent-Length: 2\r\n\r\n{}" % session,
        b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n\r\n",
        b"GET /mcp HTTP/1.1\r\n%bConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n" % session,
    )
