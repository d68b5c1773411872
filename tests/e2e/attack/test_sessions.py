"""Clients that try to get at what is not theirs: sessions of others, and doors without a token."""

import asyncio
import json
import secrets

import pytest

from clusterkit import kube as k
from clusterkit import manifests
from clusterkit.leanmcp import CONTENT, Endpoint, Http, McpClient, Reply, read_body, read_head, shut
from clusterkit.servers import Server, Servers

UNAUTHORIZED = b'{"error":"Unauthorized"}'
LISTING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()


async def with_session(client: McpClient, session: str, method: str = "POST") -> Reply:
    body = LISTING if method == "POST" else b""
    return await client.raw(method, body, {**client.headers, "mcp-session-id": session})


def forgeries(genuine: str) -> list[str]:
    """Guesses: other characters at every place, cut, longer, repeated, empty parts, random ones."""
    swapped = [
        f"{genuine[:i]}{'A' if genuine[i] != 'A' else 'B'}{genuine[i + 1 :]}" for i in range(len(genuine) - 1)
    ]
    cut = [genuine[:length] for length in range(1, len(genuine), 7)]
    wild = ["0", "null", "..", "%00", "a" * 4000, genuine * 2, f"{genuine}A", genuine.swapcase()]
    return [*swapped, *cut, *wild, *(secrets.token_urlsafe(len(genuine) * 3 // 4) for _ in range(50))]


async def test_no_guess_and_no_forgery_finds_a_session(victim: Server) -> None:
    client = await victim.client()
    assert client.session
    genuine = client.session
    client.http.keep_alive = True
    found = [(await with_session(client, forged)).status for forged in forgeries(genuine)]
    assert set(found) <= {404, 400, 431}, found
    assert found.count(404) > len(genuine)
    assert (await with_session(client, genuine)).status == 200
    assert await client.call("echo", text="still mine") == "still mine"
    await client.close()


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_a_session_of_one_server_is_worth_nothing_at_another(
    victim: Server, servers: Servers, method: str
) -> None:
    other = await servers.ready("other")
    theirs, ours = await victim.client(), await other.client()
    assert theirs.session
    assert (await with_session(ours, theirs.session, method)).status == 404
    assert await theirs.call("echo", text="not ended") == "not ended"
    await theirs.close()
    await ours.close()


async def hand_out(server: Server, tokens: str) -> None:
    """Write the Secret, and have the node look at it now instead of within two minutes."""
    await server.kube.apply(k.SECRETS, server.namespace, manifests.secret("keys", token=tokens))
    pod = (await server.pod())["metadata"]["name"]
    mark = {"metadata": {"annotations": {"looked-at": secrets.token_hex(4)}}}
    await server.kube.merge(k.PODS, server.namespace, pod, mark)


async def answered(client: McpClient, session: str, status: int) -> bool:
    """Whether the client gets this status in the end."""
    for _ in range(240):
        if (await with_session(client, session)).status == status:
            return True
        await asyncio.sleep(0.5)
    return False


async def test_tokens_are_rotated_without_a_gap_and_a_session_is_worth_nothing_with_an_old_one(
    servers: Servers,
) -> None:
    await servers.kube.apply(k.SECRETS, servers.namespace, manifests.secret("keys", token="first-token-1234"))
    server = await servers.ready("rekeyed", auth={"bearer": {"secretRef": {"name": "keys"}}})
    before, endpoint = await server.pod(), await server.endpoint()
    old, new = McpClient(endpoint, "first-token-1234"), McpClient(endpoint, "second-token-5678")
    await old.connect()
    assert old.session
    await hand_out(server, "second-token-5678\nfirst-token-1234\n")
    assert await answered(new, old.session, 200)
    assert await old.call("echo", text="both are valid") == "both are valid"
    await hand_out(server, "second-token-5678")
    assert await answered(old, old.session, 401)
    for method in ("GET", "DELETE"):
        assert (await with_session(old, old.session, method)).status == 401
    assert (await with_session(new, old.session)).status == 200, "who has the new token goes on"
    assert (await server.pod())["metadata"]["uid"] == before["metadata"]["uid"]


async def test_without_the_token_no_method_and_no_path_tells_anything(victim: Server) -> None:
    client = await victim.client()
    endpoint = client.http.endpoint
    headers = {**CONTENT, "mcp-session-id": client.session or ""}
    paths = ("/mcp", "/mcp/", "/", "/status", "/metrics", "/healthz", "/sse", "/messages", "/../mcp")
    for path in paths:
        http = Http(Endpoint(endpoint.address, endpoint.port, endpoint.host, path))
        for method in ("POST", "GET", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD", "TRACE", "BREW"):
            reader, writer = await http.send(method, headers, LISTING if method == "POST" else b"")
            head = await read_head(reader)
            body = b"" if method == "HEAD" else await read_body(reader, head)
            await shut(writer)
            if method == "BREW":  # no HTTP method: the parser ends the connection, whoever asks
                assert head.status == 405
            else:
                assert (head.status, body) in ((401, UNAUTHORIZED), (401, b"")), (method, path, head)
    assert (await client.raw("DELETE", b"", CONTENT)).status == 401
    assert await client.call("echo", text="not ended") == "not ended"
    await client.close()


async def test_the_comparison_of_tokens_says_nothing_of_how_much_was_right(victim: Server) -> None:
    token = await victim.token()
    endpoint = await victim.endpoint()
    for wrong in (token[:-1], token + "x", token.lower(), f" {token} x", "", "\x00", token[:5]):
        stranger = McpClient(endpoint, wrong)
        reply = await stranger.raw("POST", LISTING)
        assert reply.status in {400, 401}, wrong
        assert token[:5].encode() not in reply.body


async def test_hundred_strangers_at_once_do_not_keep_one_friend_out(victim: Server) -> None:
    endpoint = await victim.endpoint()
    friend = await victim.client()

    async def guess(_: int) -> int:
        return (await McpClient(endpoint, secrets.token_urlsafe(32)).raw("POST", LISTING)).status

    guesses = asyncio.gather(*(guess(n) for n in range(100)))
    assert await friend.call("echo", text="let in") == "let in"
    assert set(await guesses) == {401}
    await friend.close()
