"""Forged tokens against a server that believes this cluster's issuer, whose public key everybody knows."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import jwt
import pytest

from clusterkit import kube as k
from clusterkit import node
from clusterkit.leanmcp import McpClient
from clusterkit.servers import Server, standing
from relaykit.issuer import Issuer, bad_tokens

AUDIENCE = "https://victim.example/mcp"
LISTING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()


@pytest.fixture
async def guarded(kube: k.Kube, namespace: str) -> AsyncIterator[Server]:
    """One server for all tests of this module; the end of the namespace ends it."""
    issuer = (await kube.call("GET", "/.well-known/openid-configuration"))["issuer"]
    auth = {"type": "JWT", "jwt": {"issuer": issuer, "audiences": [AUDIENCE]}}
    async with standing(kube, namespace, "guarded", auth=auth) as server:
        yield server


class Forger(Issuer):
    """Claims to be the real issuer and to sign with its key, of which it has the public half."""

    def __init__(self, issuer: str, real: k.Json) -> None:
        super().__init__(real["kid"], issuer, AUDIENCE)
        self.real = real

    def public(self, kid: str) -> Any:
        return jwt.PyJWK(self.real).key


async def forger(kube: k.Kube) -> Forger:
    real = (await kube.http.get("/openid/v1/jwks")).json()["keys"][0]
    return Forger((await kube.call("GET", "/.well-known/openid-configuration"))["issuer"], real)


async def genuine(namespace: str, audience: str = AUDIENCE) -> str:
    order = ("-n", namespace, "create", "token", "default", f"--audience={audience}", "--duration=10m")
    return (await asyncio.to_thread(node.kubectl, *order)).stdout.strip()


async def test_no_forged_token_opens_anything(guarded: Server) -> None:
    endpoint = await guarded.endpoint()
    client = McpClient(endpoint, await genuine(guarded.namespace))
    await client.connect()
    forging = await forger(guarded.kube)
    forged = bad_tokens(forging) | {
        "signed by somebody else": forging.token(),
        "for another audience": await genuine(guarded.namespace, "https://other.example"),
        "for the API server": await genuine(guarded.namespace, forging.issuer),
    }
    header, claims, signature = client.headers["authorization"].removeprefix("Bearer ").split(".")
    forged["with another's signature"] = f"{header}.{forging.token().split('.')[1]}.{signature}"
    forged["with its signature changed"] = f"{header}.{claims}.{signature[:-4]}AAAA"
    for name, token in forged.items():
        stranger = McpClient(endpoint, token)
        stranger.headers["mcp-session-id"] = client.session or ""
        for method in ("POST", "DELETE", "GET"):
            reply = await stranger.raw(method, LISTING if method == "POST" else b"")
            assert (reply.status, reply.body) == (401, b'{"error":"Unauthorized"}'), (name, method)
    assert await client.call("echo", text="still mine") == "still mine"
    await client.close()


async def test_tokens_with_unknown_keys_do_not_wear_out_the_server(guarded: Server) -> None:
    endpoint = await guarded.endpoint()
    client = McpClient(endpoint, await genuine(guarded.namespace), keep_alive=True)
    await client.connect()
    forging = await forger(guarded.kube)
    began = time.time()
    stranger = McpClient(endpoint, keep_alive=True)
    for number in range(300):
        token = forging.token(header={"kid": f"nobody-{number}"})
        stranger.headers["authorization"] = f"Bearer {token}"
        assert (await stranger.raw("POST", LISTING)).status == 401
        if number % 30 == 0:
            assert await client.call("echo", text="served") == "served"
    await stranger.http.close()
    await client.close()
    assert time.time() - began < 60
