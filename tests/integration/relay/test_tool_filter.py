"""Tools that the resource keeps from clients: nobody sees them, nobody calls them, in either era."""

import json
from typing import Any

import pytest

from mcp_sidecar.core.overrides import Override
from relaykit.client import Client, body
from relaykit.pod import Pod

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture
async def pod(make_pod: Any) -> Pod:
    made: Pod = await make_pod(tools_allow=("echo", "s*"), tools_deny=("stat?",))
    await made.settled()
    return made


async def stateless(pod: Pod, method: str, **params: Any) -> dict[str, Any]:
    """The answer to a client without a session."""
    client = Client(pod.url, pod.settings.token.decode() if pod.settings.token else None)
    message = body(method, 1, **params, _meta=ENVELOPE)
    headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": method, "mcp_name": params.get("name")}
    async with client:
        answer: dict[str, Any] = (await client.post(message, **headers)).json()
    return answer


def allowed(name: str) -> bool:
    return name == "echo" or (name.startswith("s") and name != "stats")


async def test_lists_for_clients_and_status_show_the_tools_that_may_be_called(pod: Pod) -> None:
    client = await pod.connected()
    listed = json.loads((await client.post(body("tools/list", 1))).content)
    names = [tool["name"] for tool in listed["result"]["tools"]]
    assert "echo" in names
    assert [name for name in names if not allowed(name)] == []
    modern = await stateless(pod, "tools/list")
    assert [tool["name"] for tool in modern["result"]["tools"]] == names
    status = await pod.status()
    assert [tool.name for tool in status.tools] == names
    assert status.tool_count == len(names)


async def test_a_tool_that_is_kept_out_answers_like_one_that_does_not_exist(pod: Pod) -> None:
    client = await pod.connected()
    assert (await client.call("echo", 5, text="let in"))["result"]["content"][0]["text"] == '"let in"'
    for name in ("stats", "change", "no-such-tool"):
        answer = await client.call(name, 6)
        assert answer["error"] == {"code": -32602, "message": f"Unknown tool: {name}"}
        assert (await stateless(pod, "tools/call", name=name, arguments={}))["error"]["code"] == -32602
    assert "result" in await stateless(pod, "tools/call", name="echo", arguments={"text": "x"})


async def test_no_other_way_of_writing_a_call_reaches_the_server(pod: Pod) -> None:
    client = await pod.connected()
    start = b'{"jsonrpc":"2.0","id":9,"method":'
    for rest in (
        b'"tools/call","params":{"name":"stats","name":"echo","arguments":{}}}',
        b'"tools/call","params":{"name":"echo","Name":"stats","arguments":{}}}',
        b'"ping","Method":"tools/call","params":{"name":"stats"}}',
    ):
        reply = await client.post(start + rest)
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, -32600)
    assert (await client.post(body("tools/call", name="stats"))).status_code == 202
    assert (await client.call("echo", 10, text="alive"))["id"] == 10


async def test_an_added_tool_that_is_kept_out_does_not_show(make_pod: Any) -> None:
    pod = await make_pod(tools_deny=("extra*", "nothing"))
    await pod.settled()
    before = (await pod.status()).tool_count
    client = await pod.connected()
    await client.call("change", 1)
    listed = json.loads((await client.post(body("tools/list", 2))).content)
    assert [tool for tool in listed["result"]["tools"] if tool["name"].startswith("extra")] == []
    assert (await pod.status()).tool_count == before


@pytest.mark.parametrize("server", ["answer", "stateless"])
async def test_clients_of_both_eras_know_a_tool_by_what_the_resource_calls_it(
    make_pod: Any, server: str
) -> None:
    overrides = (Override("echo", rename="say", title="Say it"), Override("stats", description="Figures"))
    pod = await make_pod(server, tools_allow=("echo", "stats"), tools_overrides=overrides)
    await pod.settled()
    client = await pod.connected()
    listed = json.loads((await client.post(body("tools/list", 1))).content)["result"]["tools"]
    modern = (await stateless(pod, "tools/list"))["result"]["tools"]
    assert listed == modern
    assert [(tool["name"], tool.get("title")) for tool in listed if tool["name"] != "stats"] == [
        ("say", "Say it")
    ]
    status = await pod.status()
    assert [(tool.name, tool.title) for tool in status.tools if tool.name == "say"] == [("say", "Say it")]
    said = (await client.call("say", 5, text="hello"))["result"]["content"][0]["text"]
    assert "hello" in said
    assert "result" in await stateless(pod, "tools/call", name="say", arguments={"text": "x"})
    unknown = {"code": -32602, "message": "Unknown tool: echo"}
    assert (await client.call("echo", 6, text="x"))["error"] == unknown
    assert (await stateless(pod, "tools/call", name="echo", arguments={}))["error"] == unknown


async def test_overrides_that_do_not_fit_are_told_and_clients_are_served(make_pod: Any) -> None:
    overrides = (Override("echo", rename="stats"), Override("absent", title="x"))
    pod = await make_pod(tools_overrides=overrides)
    await pod.settled()
    client = await pod.connected()
    assert (await client.call("stats", 1, text="echoed"))["result"]["content"][0]["text"] == '"echoed"'
    status = await pod.status()
    assert status.error is not None
    assert (status.error.phase, status.error.reason) == ("ListTools", "ToolOverridesUnmatched")
    assert "'stats'" in status.error.message
    assert "'absent'" in status.error.message
    assert [tool.name for tool in status.tools].count("stats") == 1
