import json
from typing import Any

import pytest

from mcp_sidecar.core import frames
from mcp_sidecar.core.modern import envelope
from mcp_sidecar.core.modern.errors import RejectionError, own, status

META = {envelope.VERSION_KEY: "2026-07-28", envelope.CAPABILITIES_KEY: {"roots": {}}}
HEADERS = {b"mcp-protocol-version": b"2026-07-28", b"mcp-method": b"tools/call", b"mcp-name": b"t"}


def request(params: Any, method: str = "tools/call") -> frames.Frame:
    message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    return frames.parse(json.dumps(message).encode())


def rejected(params: Any, given: dict[bytes, bytes], method: str = "tools/call") -> RejectionError:
    with pytest.raises(RejectionError) as told:
        envelope.check(request(params, method), given)
    return told.value


def test_a_request_in_order_says_who_sent_it() -> None:
    said = envelope.check(request({"name": "t", "_meta": META}), HEADERS)
    assert (dict(said.capabilities), said.log_level) == ({"roots": {}}, None)
    said = envelope.check(request({"name": "t", "_meta": META | {envelope.LEVEL_KEY: "error"}}), HEADERS)
    assert said.log_level == "error"


@pytest.mark.parametrize(
    ("params", "changes", "code", "words"),
    [
        ({"name": "t"}, {}, -32602, "protocolVersion and"),
        ({"name": "t", "_meta": []}, {}, -32602, "protocolVersion and"),
        ({"name": "t", "_meta": {envelope.VERSION_KEY: "2026-07-28"}}, {}, -32602, "clientCapabilities is"),
        (
            {"name": "t", "_meta": {envelope.CAPABILITIES_KEY: {}}},
            {},
            -32602,
            "protocolVersion is missing",
        ),
        (
            {"name": "t", "_meta": META | {envelope.CAPABILITIES_KEY: 1}},
            {},
            -32602,
            "not an object",
        ),
        ({"name": "t", "_meta": META | {envelope.LEVEL_KEY: "loud"}}, {}, -32602, "logLevel is none of"),
        ({"name": "t", "_meta": META}, {b"mcp-protocol-version": None}, -32020, "MCP-Protocol-Version"),
        ({"name": "t", "_meta": META}, {b"mcp-protocol-version": b"2025-11-25"}, -32020, "MCP-Protocol"),
        ({"name": "t", "_meta": META}, {b"mcp-method": b"TOOLS/CALL"}, -32020, "Mcp-Method"),
        ({"name": "t", "_meta": META}, {b"mcp-method": None}, -32020, "Mcp-Method"),
        ({"name": "t", "_meta": META}, {b"mcp-name": None}, -32020, "Mcp-Name"),
        ({"name": "t", "_meta": META}, {b"mcp-name": b"T"}, -32020, "Mcp-Name"),
        ({"name": "t", "_meta": META}, {b"mcp-name": b"t\nt"}, -32020, "Mcp-Name"),
    ],
)
def test_the_first_rule_that_is_broken_is_named(
    params: Any, changes: dict[bytes, bytes | None], code: int, words: str
) -> None:
    given = {name: value for name, value in (HEADERS | changes).items() if value is not None}
    told = rejected(params, given)
    assert (told.code, words in str(told)) == (code, True)
    assert status(told.code) == 400


def test_a_revision_that_is_not_served_is_answered_with_those_that_are() -> None:
    meta = META | {envelope.VERSION_KEY: "2099-01-01"}
    told = rejected({"name": "t", "_meta": meta}, HEADERS | {b"mcp-protocol-version": b"2099-01-01"})
    assert told.code == -32022
    assert told.data == {"supported": ["2026-07-28"], "requested": "2099-01-01"}


@pytest.mark.parametrize(
    ("name", "header"),
    [("grüße", b"=?base64?Z3LDvMOfZQ==?="), (" t ", b"=?base64?IHQg?="), ("=?base64?x?=", b"=?base64?x?=")],
)
def test_a_name_that_no_header_can_carry_comes_wrapped(name: str, header: bytes) -> None:
    params = {"name": name, "_meta": META}
    if name == "=?base64?x?=":
        assert rejected(params, HEADERS | {b"mcp-name": header}).code == -32020
    else:
        assert envelope.check(request(params), HEADERS | {b"mcp-name": header})


def test_methods_of_an_extension_may_leave_the_name_out_but_not_lie() -> None:
    params = {"taskId": "1", "_meta": META}
    given = {b"mcp-protocol-version": b"2026-07-28", b"mcp-method": b"tasks/get"}
    assert envelope.check(request(params, "tasks/get"), given)
    assert rejected(params, given | {b"mcp-name": b"2"}, "tasks/get").code == -32020


@pytest.mark.parametrize(
    ("params", "more", "left"),
    [
        (b'{"name":"t","_meta":{%s}}', (), b'{"name":"t"}'),
        (
            b'{"_meta":{%s,"progressToken":1e400},"n":1.0E2}',
            (),
            b'{"n":1.0E2,"_meta":{"progressToken":1e400}}',
        ),
        (b'{"n":null,"requestState":"x","_meta":{%s}}', ("requestState",), b'{"n":null}'),
        (b'{"n":1}', (), b'{"n":1}'),
    ],
)
def test_stripping_leaves_all_but_the_envelope_as_it_was_written(
    params: bytes, more: tuple[str, ...], left: bytes
) -> None:
    entries = (
        b'"io.modelcontextprotocol/protocolVersion" : "2026-07-28", "io.modelcontextprotocol/clientInfo":{}'
    )
    written = params.replace(b"%s", entries)
    data = b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + written + b"}"
    stripped = envelope.stripped(data, json.loads(written), *more)
    found = stripped[stripped.index(b'"params":') + 9 : -1]
    assert found.startswith(b"{")
    assert sorted(found[1:-1].split(b",")) == sorted(left[1:-1].split(b","))


@pytest.mark.parametrize(
    ("data", "params"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"m"}', {}),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{}}', {}),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1e400}}', {"a": 1}),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"b":1e400}}}', {"_meta": {"b": 1}}),
    ],
)
def test_wrapping_adds_the_envelope_and_nothing_else(data: bytes, params: dict[str, Any]) -> None:
    entries = envelope.of({"sampling": {}}, {"name": "c"}, "info")
    wrapped = envelope.wrapped(data, params, envelope.texts(entries))
    meta = json.loads(wrapped)["params"]["_meta"]
    assert entries.items() <= meta.items()
    assert (b"1e400" in wrapped) == (b"1e400" in data)
    back = envelope.stripped(wrapped, json.loads(wrapped)["params"])
    assert json.loads(back).get("params", {}) == json.loads(data).get("params", {})


def test_the_relays_own_errors_have_codes_that_nobody_else_may_use() -> None:
    assert (own(-32000), own(-32001), own(-32601)) == (-31000, -31001, -32601)
    assert (status(-31001), status(-32601), status("x"), status(5)) == (200, 404, 200, 200)
