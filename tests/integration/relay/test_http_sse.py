"""The transport of revision 2024-11-05, for those who asked for it."""

import asyncio
import json
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.sse import sse_client

from relaykit.pod import TOKEN, Pod
from relaykit.waiting import eventually

AUTH = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture(params=["answer", "stateless"])
async def pod(make_pod: Any, request: pytest.FixtureRequest) -> Pod:
    """A pod that serves it, with a server of either kind."""
    made: Pod = await make_pod(request.param, http_sse=True, protocol="Auto")
    await made.until("Connected")
    return made


def stream_url(pod: Pod) -> str:
    return pod.url.removesuffix("/mcp") + "/sse"


def library(pod: Pod) -> Client:
    return Client(sse_client(stream_url(pod), headers=AUTH), mode="legacy")


def told(result: Any) -> Any:
    return json.loads(result.content[0].text)


async def test_the_library_of_today_can_use_it(pod: Pod) -> None:
    steps: list[float] = []

    async def step(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async with library(pod) as client, library(pod) as other:
        assert "echo" in {tool.name for tool in (await client.list_tools()).tools}
        calls = [one.call_tool("echo", {"text": f"{n}"}) for n in range(10) for one in (client, other)]
        answers = [told(result) for result in await asyncio.gather(*calls)]
        texts = [answer["text"] if isinstance(answer, dict) else answer for answer in answers]
        assert texts == [f"{n // 2}" for n in range(20)]
        await client.call_tool("progress", {}, progress_callback=step)

        async def stepped() -> bool:
            return steps[:2] == [0, 1]

        await eventually(stepped)  # the library may tell of a result first
    await no_session(pod)


async def no_session(pod: Pod) -> None:
    async def none() -> bool:
        return "\nmcp_relay_clients 0.0\n" in (await pod.admin("GET", "/metrics")).text

    await eventually(none)


async def test_a_session_ends_with_its_stream_and_so_do_its_calls(pod: Pod) -> None:
    async def abandon() -> None:
        async with library(pod) as client:
            await client.call_tool("sleep", {"seconds": 30})

    call = asyncio.create_task(abandon())
    await pod.in_flight(1)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    await pod.in_flight(0)
    await no_session(pod)


async def place(lines: Any) -> str:
    async for line in lines:
        if line.startswith("data: "):
            return str(line[6:])
    raise AssertionError("the stream named no place for messages")


async def test_messages_that_make_no_sense_are_refused(pod: Pod) -> None:
    root = pod.url.removesuffix("/mcp")
    async with (
        httpx.AsyncClient(headers=AUTH, timeout=10, trust_env=False) as http,
        http.stream("GET", stream_url(pod)) as stream,
    ):
        lines = stream.aiter_lines()
        url = root + await place(lines)
        assert (await http.post(url, content=b"{")).status_code == 400
        assert (await http.post(f"{root}/messages?sessionId=nobody", content=b"{}")).status_code == 404
        assert (await http.post(f"{root}/messages", content=b"{}")).status_code == 404
        async with httpx.AsyncClient(trust_env=False) as stranger:
            for headers in (
                {},
                {"authorization": "Bearer wrong"},
                {"authorization": "Basic Y2xpZW50LXRva2Vu"},
            ):
                refused = await stranger.post(url, json={"jsonrpc": "2.0", "id": 1}, headers=headers)
                assert (refused.status_code, "www-authenticate" in refused.headers) == (401, True)
        early = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert (await http.post(url, json=early)).status_code == 202
        answer = json.loads(await place(lines))
        assert (answer["id"], answer["error"]["code"]) == (1, -32600)
        assert (await http.post(stream_url(pod), json=early)).status_code == 405
        assert (await http.get(url)).status_code == 405
    async with httpx2.AsyncClient() as stranger:
        assert (await stranger.get(stream_url(pod))).status_code == 401


async def test_who_did_not_ask_for_it_does_not_serve_it(make_pod: Any) -> None:
    pod = await make_pod()
    await pod.until("Connected")
    async with httpx.AsyncClient(headers=AUTH, trust_env=False) as http:
        assert (await http.get(stream_url(pod))).status_code == 404


async def test_a_relay_that_stops_ends_the_streams(pod: Pod) -> None:
    async with (
        httpx.AsyncClient(headers=AUTH, timeout=10, trust_env=False) as http,
        http.stream("GET", stream_url(pod)) as stream,
    ):
        lines = stream.aiter_lines()
        assert (await place(lines)).startswith("/messages?sessionId=")
        await pod.stop_relay()
        with pytest.raises((AssertionError, httpx.TransportError)):
            await place(lines)
