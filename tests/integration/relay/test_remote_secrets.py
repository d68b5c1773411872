"""Values of headers and URLs, which a remote server repeats: nobody else learns them."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from mcp_sidecar.core.target import Header
from relaykit.pod import Pod
from relaykit.remote import told
from relaykit.unruly import Exchange, Json, MakeRelay, Unruly, ready

WithHeader = Callable[..., Awaitable[Pod]]


@pytest.fixture
def with_header(tmp_path: Path, relay: MakeRelay) -> WithHeader:
    """Makes a relay that sends this value in the Authorization header, behind that prefix."""

    async def make(value: str, prefix: str = "") -> Pod:
        files = tmp_path / "pod0" / "secrets"
        files.mkdir(parents=True)
        (files / "h0").write_text(value)
        return await ready(relay, where={"headers": (Header("Authorization", "h0", prefix),)})

    return make


async def test_a_secret_across_the_cut_of_a_long_text_is_hidden(
    unruly: Unruly, with_header: WithHeader
) -> None:
    secret = "sesame-opens-the-very-long-door-0123456789"

    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call":
            return False
        http.reply(400, b"y " * 130 + b"Bearer " + secret.encode())
        return True

    unruly.post = post
    pod = await with_header(secret, "Bearer ")
    message = (await (await pod.connected()).call("t"))["error"]["message"]
    assert "sesame" not in message
    assert "Bearer ***" in message


async def test_a_secret_in_the_url_s_query_is_hidden_from_callers_and_in_the_status(
    unruly: Unruly, relay: MakeRelay
) -> None:
    pod = await ready(relay, "/mcp?api_key=SECRET%2F123&v=12")
    await pod.settled()  # else the relay's own request for the tools may be the one that is refused
    client = await pod.connected()

    def post(http: Exchange, _message: Json) -> bool:
        http.reply(410, {"message": f"no route {http.path}, key SECRET/123"})
        return True

    unruly.post = post
    message = (await client.call("t"))["error"]["message"]
    assert "SECRET" not in message
    assert "no route /mcp?***&***, key ***" in message
    again = await relay("/mcp?api_key=SECRET%2F123&v=12")
    await told(again, "no route /mcp?***&***, key ***")


@pytest.mark.parametrize(
    ("value", "repeated"),
    [
        ("Bearer sesame-opens-0123", b"token sesame-opens-0123 is bad"),
        ("sesame/opens+0123==", rb'{"error": "bad sesame\/opens\u002b0123=="}'),
        ("sesame/opens+0123==", b"bad sesame%2Fopens%2B0123%3D%3D"),
        ("sesame<opens&0123", b"bad sesame&lt;opens&amp;0123"),
    ],
)
async def test_a_token_is_hidden_without_its_scheme_and_in_other_spellings(
    unruly: Unruly, with_header: WithHeader, value: str, repeated: bytes
) -> None:
    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call":
            return False
        http.reply(400, repeated)
        return True

    unruly.post = post
    message = (await (await (await with_header(value)).connected()).call("t"))["error"]["message"]
    assert "***" in message
    assert "sesame" not in message


@pytest.mark.parametrize("status", [200, 400])
async def test_a_secret_in_an_error_of_the_server_is_hidden_and_the_rest_passes(
    unruly: Unruly, with_header: WithHeader, status: int
) -> None:
    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call":
            return False
        data = {"sent": ["Bearer sesame-opens-0123"], "code": 7}
        error = {"code": -32050, "message": "token sesame-opens-0123 is bad", "data": data}
        http.reply(status, {"jsonrpc": "2.0", "id": message["id"], "error": error})
        return True

    unruly.post = post
    answer = await (await (await with_header("sesame-opens-0123", "Bearer ")).connected()).call("t")
    data = {"sent": ["Bearer ***"], "code": 7}
    assert answer["error"] == {"code": -32050, "message": "token *** is bad", "data": data}
