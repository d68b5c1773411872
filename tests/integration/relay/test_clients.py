"""The clients people use, through the relay, against the server of the conformance suite."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client, types
from mcp.client.client import ConnectMode
from mcp.shared.exceptions import MCPError

from relaykit.waiting import eventually
from suitekit import clients, fixtures, local

REVISIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
SERVERS = {"handshake": (local.LEGACY, "Auto"), "stateless": (local.MODERN, "Modern")}


@pytest.fixture(scope="module", params=SERVERS)
def relay(request: pytest.FixtureRequest) -> Iterator[local.Local]:
    """A relay before a server with sessions, and one before a server without."""
    with local.running(*SERVERS[request.param]) as running:
        yield running


async def sample(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    asked = params.messages[0].content
    assert isinstance(asked, types.TextContent)
    answer = types.TextContent(type="text", text=f"You said {asked.text}")
    return types.CreateMessageResult(role="assistant", content=answer, model="none")


async def elicit(context: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"username": params.message, "email": "a@b.example"})


async def holds(condition: bool) -> bool:
    return condition


def told(result: Any) -> str:
    return str(result.content[0].text)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_mcp_library_can_use_everything(relay: local.Local, mode: ConnectMode) -> None:
    logged: list[object] = []
    steps: list[float] = []

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        logged.append(params.data)

    async def step(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async with Client(
        relay.url,
        mode=mode,
        sampling_callback=sample,
        elicitation_callback=elicit,
        logging_callback=log,
        log_level="info" if mode == "auto" else None,
    ) as client:
        assert client.protocol_version == REVISIONS[mode]
        assert "test_simple_text" in {tool.name for tool in (await client.list_tools()).tools}
        assert "simple text" in told(await client.call_tool("test_simple_text", {}))
        assert (await client.call_tool("test_error_handling", {})).is_error
        assert "You said hello" in told(await client.call_tool("test_sampling", {"prompt": "hello"}))
        assert '"username": "who"' in told(await client.call_tool("test_elicitation", {"message": "who"}))
        await client.call_tool("test_tool_with_logging", {})
        await eventually(lambda: holds(len(logged) == 3))  # the library may tell of a result first
        await client.call_tool("test_tool_with_progress", {}, progress_callback=step)
        await eventually(lambda: holds(sorted(steps) == [0, 50, 100]))
        assert len((await client.list_resources()).resources) == 3
        assert (await client.read_resource("test://template/7/data")).contents
        prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "x", "arg2": "y"})
        assert "arg1='x'" in prompt.messages[0].content.text  # type: ignore[union-attr]  # a text content


async def test_many_clients_of_both_kinds_share_one_process(relay: local.Local) -> None:
    before = relay.started_servers()

    async def use(mode: ConnectMode) -> None:
        async with Client(relay.url, mode=mode) as client:
            calls = [client.call_tool("test_simple_text", {}) for _ in range(10)]
            assert {told(result) for result in await asyncio.gather(*calls)} == {
                "This is a simple text response for testing."
            }

    await asyncio.gather(*(use(mode) for mode in ("auto", "legacy") * 3))
    assert relay.servers() == before
    assert len(before) == 1


async def test_a_client_that_offers_nothing_is_asked_for_nothing(relay: local.Local) -> None:
    async with Client(relay.url, mode="legacy") as client:
        with pytest.raises(MCPError, match=r"no client is known to be concerned|lacks a capability"):
            await client.call_tool("test_sampling", {"prompt": "hello"})


@pytest.mark.timeout(600)  # the first time a client is installed
@pytest.mark.parametrize("name", ["mcp 1", "fastmcp 4", "typescript 1", "typescript 2", "typescript 2 auto"])
async def test_clients_of_other_libraries_can_use_everything(relay: local.Local, name: str) -> None:
    command = await asyncio.to_thread(clients.command, name)
    process = await asyncio.create_subprocess_exec(
        *command, relay.url, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(60):
            output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, errors.decode()
    seen = json.loads(output)
    assert seen.get("revision") in (None, REVISIONS["auto" if name.endswith("auto") else "legacy"])
    assert seen["tools"] == relay.tools
    assert seen["resources"] == len(fixtures.RESOURCES)
    assert "simple text" in seen["text"]
    assert "You said hello" in seen["sampled"]
    assert '"username": "who"' in seen["elicited"]
    assert sorted(seen["logged"]) == sorted(fixtures.LOG_TEXTS)
    assert sorted(seen["steps"]) == [0, 50, 100]
