"""Without the token nothing is told and nothing is done, on every method alike."""

import base64
import json
from collections.abc import AsyncIterator

import pytest

from clusterkit import kube as k
from clusterkit import manifests
from clusterkit.leanmcp import CONTENT, McpClient
from clusterkit.servers import Server, Servers, standing

WRONG = {
    "no token": {},
    "wrong token": {"authorization": "Bearer wrong"},
    "empty token": {"authorization": "Bearer "},
    "wrong scheme": {"authorization": "Basic d3Jvbmc6d3Jvbmc="},
}


@pytest.fixture
async def guarded(kube: k.Kube, namespace: str) -> AsyncIterator[Server]:
    """One server for all tests of this module; the end of the namespace ends it."""
    async with standing(kube, namespace, "guarded") as server:
        yield server


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@pytest.mark.parametrize("headers", WRONG.values(), ids=WRONG.keys())
async def test_a_request_without_the_token_gets_401_and_a_challenge(
    guarded: Server, method: str, headers: dict[str, str]
) -> None:
    known = await guarded.client()
    assert known.session
    stranger = McpClient(known.http.endpoint)
    body = (
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode() if method == "POST" else b""
    )
    reply = await stranger.raw(method, body, {**CONTENT, "mcp-session-id": known.session, **headers})
    assert reply.status == 401
    assert json.loads(reply.body) == {"error": "Unauthorized"}
    assert reply.headers["www-authenticate"].startswith("Bearer")
    assert await known.call("echo", text="still there") == "still there"
    await known.close()


async def test_the_token_of_the_secret_opens_the_door(guarded: Server) -> None:
    client = await guarded.client()
    assert await client.call("echo", text="let in") == "let in"
    await client.close()
    assert (await client.raw("POST", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')).status == 404


async def test_the_admin_port_tells_status_only_to_the_operator(guarded: Server) -> None:
    pod = await guarded.pod()
    proxy = f"{k.PODS.path(guarded.namespace, pod['metadata']['name'] + ':8081')}/proxy"
    health = await guarded.kube.http.get(f"{proxy}/healthz")
    assert health.status_code == 200
    assert (await guarded.kube.http.get(f"{proxy}/status")).status_code == 401


async def test_a_token_of_ones_own_is_taken_from_the_secret_named(servers: Servers) -> None:
    await servers.kube.apply(
        k.SECRETS, servers.namespace, manifests.secret("my-token", key="open sesame 1234")
    )
    auth = {"bearer": {"secretRef": {"name": "my-token", "key": "key"}}}
    server = await servers.ready("own-token", auth=auth)
    client = McpClient(await server.endpoint(), "open sesame 1234")
    await client.connect()
    await client.close()
    generated = await server.only_child(k.SECRETS)
    if token := generated["data"].get("token"):
        stranger = McpClient(await server.endpoint(), base64.b64decode(token).decode())
        assert (await stranger.raw("POST", b"{}")).status == 401


async def test_type_none_needs_no_token(servers: Servers) -> None:
    server = await servers.ready("open", auth={"type": "None"})
    client = McpClient(await server.endpoint())
    await client.connect()
    assert await client.call("echo", text="hello") == "hello"
    await client.close()


async def test_a_foreign_origin_is_refused(guarded: Server) -> None:
    client = await guarded.client()
    for origin in ("http://foreign.example", "null"):
        reply = await client.raw("GET", b"", {**client.headers, "origin": origin})
        assert reply.status == 403
    await client.close()
