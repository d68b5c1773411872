"""Service account tokens as the way in: nothing but the audience is agreed upon, and no Secret is shared."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from clusterkit import kube as k
from clusterkit import node
from clusterkit.leanmcp import Endpoint, Http, HttpError, McpClient, RpcError
from clusterkit.servers import Server, Servers, condition, container_status, has_error, standing

AUDIENCE = "https://guarded.example/mcp"


async def cluster_issuer(kube: k.Kube) -> str:
    told = await kube.call("GET", "/.well-known/openid-configuration")
    return str(told["issuer"])


async def auth(kube: k.Kube, **changes: Any) -> k.Json:
    """`spec.auth` for tokens of this cluster's service accounts."""
    return {"type": "JWT", "jwt": {"issuer": await cluster_issuer(kube), "audiences": [AUDIENCE], **changes}}


async def token(namespace: str, account: str = "default", audience: str = AUDIENCE) -> str:
    """As anybody makes one who may: `kubectl create token`."""
    order = ("-n", namespace, "create", "token", account, f"--audience={audience}", "--duration=10m")
    return (await asyncio.to_thread(node.kubectl, *order)).stdout.strip()


@pytest.fixture
async def guarded(kube: k.Kube, namespace: str) -> AsyncIterator[Server]:
    """A server without any way out of its pod; the end of the namespace ends it."""
    spec = {"auth": await auth(kube), "network": {"egress": "None"}}
    async with standing(kube, namespace, "guarded", **spec) as server:
        yield server


async def test_a_service_account_token_opens_the_server_and_others_do_not(guarded: Server) -> None:
    endpoint = await guarded.endpoint()
    client = McpClient(endpoint, await token(guarded.namespace))
    await client.connect()
    assert await client.call("echo", text="let in") == "let in"
    wrong = McpClient(endpoint, await token(guarded.namespace, audience="https://other.example"))
    reply = await wrong.raw("POST", b"{}")
    assert reply.status == 401
    assert (
        'error="invalid_token", error_description="The token is for another audience"'
        in (reply.headers["www-authenticate"])
    )
    assert "token" not in (await guarded.only_child(k.SECRETS))["data"], "there is none to be stolen"
    await client.close()


async def test_a_session_belongs_to_the_service_account_that_opened_it(guarded: Server) -> None:
    node.kubectl("-n", guarded.namespace, "create", "serviceaccount", "other")
    endpoint = await guarded.endpoint()
    mine = McpClient(endpoint, await token(guarded.namespace))
    await mine.connect()
    other = McpClient(endpoint, await token(guarded.namespace, "other"))
    other.headers["mcp-session-id"] = mine.session or ""
    for method in ("POST", "GET", "DELETE"):
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}' if method == "POST" else b""
        assert (await other.raw(method, body)).status == 404
    mine.headers["authorization"] = f"Bearer {await token(guarded.namespace)}"
    assert await mine.call("echo", text="mine, with the next token") == "mine, with the next token"
    await mine.close()


async def test_clients_find_the_issuer_without_a_token(guarded: Server) -> None:
    endpoint = await guarded.endpoint()
    challenge = (await McpClient(endpoint).raw("POST", b"{}")).headers["www-authenticate"]
    path = "/.well-known/oauth-protected-resource/mcp"
    assert challenge == f'Bearer realm="mcp", resource_metadata="http://{endpoint.host}{path}"'
    told = await Http(Endpoint(endpoint.address, endpoint.port, endpoint.host, path)).request("GET", {})
    metadata = json.loads(told.body)
    assert metadata["authorization_servers"] == [await cluster_issuer(guarded.kube)]
    assert metadata["resource"] == f"http://{endpoint.host}/mcp"


async def test_an_issuer_that_cannot_be_asked_is_told_and_lets_nobody_in(
    servers: Servers, kube: k.Kube
) -> None:
    server = await servers.apply("keyless", auth=await auth(kube, issuer="https://issuer.invalid"))
    item = await server.until(has_error("KeysUnavailable"))
    accepted = condition(item, "Accepted")
    assert (accepted["status"], accepted["reason"]) == ("False", "KeysUnavailable")
    assert accepted["message"].startswith("spec.auth.jwt.issuer: https://issuer.invalid: the keys cannot be")
    assert condition(item, "Ready")["status"] == "False"
    await server.patch(auth={"jwt": {"issuer": await cluster_issuer(kube)}})
    await server.ready()
    client = McpClient(await server.endpoint(), await token(server.namespace))
    await client.connect()
    await client.close()


async def test_a_restarted_relay_lets_clients_with_tokens_in_at_once(guarded: Server) -> None:
    client = McpClient(await guarded.endpoint(), await token(guarded.namespace))
    await client.connect()
    before = await guarded.pod()
    order = ("-n", guarded.namespace, "exec", before["metadata"]["name"], "-c", "relay", "--")
    end = "import os, signal; os.kill(1, signal.SIGTERM)"
    # The relay may end, and its container with it, before this process does.
    await asyncio.to_thread(node.kubectl, *order, "/opt/venv/bin/python", "-c", end, check=False)
    assert await answered(client)
    await guarded.kube.until(
        k.PODS,
        guarded.namespace,
        before["metadata"]["name"],
        lambda o: container_status(o or {"status": {}}, "relay").get("restartCount") == 1,
        what="restart of the relay",
    )
    assert await answered(client)  # by the new one, if the first answer was the old one's
    assert (await guarded.pod())["metadata"]["uid"] == before["metadata"]["uid"]
    await client.close()


async def answered(client: McpClient) -> bool:
    """Whether a call is answered once the relay is there again; one that is just ending says so."""
    for _ in range(200):
        try:
            return await client.call("echo", text="again") == "again"
        except (OSError, EOFError):
            await asyncio.sleep(0.2)
        except (RpcError, HttpError) as error:
            if "is shutting down" not in str(error):
                raise
            await asyncio.sleep(0.2)
    return False
