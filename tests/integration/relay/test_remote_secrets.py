"""Values of headers and URLs, which a remote server repeats: nobody else learns them."""

from pathlib import Path

from mcp_sidecar.core.target import Header
from relaykit.remote import told
from relaykit.unruly import Exchange, Json, MakeRelay, Unruly, ready


async def test_a_secret_across_the_cut_of_a_long_text_is_hidden(
    tmp_path: Path, unruly: Unruly, relay: MakeRelay
) -> None:
    secret = "sesame-opens-the-very-long-door-0123456789"

    def post(http: Exchange, message: Json) -> bool:
        if message.get("method") != "tools/call":
            return False
        http.reply(400, b"y " * 130 + b"Bearer " + secret.encode())
        return True

    unruly.post = post
    files = tmp_path / "pod0" / "secrets"
    files.mkdir(parents=True)
    (files / "h0").write_text(secret)
    pod = await ready(relay, where={"headers": (Header("Authorization", "h0", "Bearer "),)})
    message = (await (await pod.connected()).call("t"))["error"]["message"]
    assert "sesame" not in message
    assert "Bearer ***" in message


async def test_a_secret_in_the_url_s_query_is_hidden_from_callers_and_in_the_status(
    unruly: Unruly, relay: MakeRelay
) -> None:
    pod = await ready(relay, "/mcp?api_key=SECRET%2F123&v=12")

    def post(http: Exchange, _message: Json) -> bool:
        http.reply(410, {"message": f"no route {http.path}, key SECRET/123"})
        return True

    unruly.post = post
    message = (await (await pod.connected()).call("t"))["error"]["message"]
    assert "SECRET" not in message
    assert "no route /mcp?***&***, key ***" in message
    again = await relay("/mcp?api_key=SECRET%2F123&v=12")
    await told(again, "no route /mcp?***&***, key ***")
