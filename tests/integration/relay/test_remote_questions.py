"""Questions of a remote server: the stream on which one comes tells whom it concerns."""

import asyncio
import json
import threading

from relaykit.client import body
from relaykit.unruly import Exchange, Json, MakeRelay, Unruly, came, ready

QUESTION = b'data: {"jsonrpc":"2.0","id":7,"method":"roots/list"}\n\n'


async def test_a_question_on_a_call_s_stream_goes_to_its_client_while_others_call(
    unruly: Unruly, relay: MakeRelay
) -> None:
    answers: list[Json] = []
    answered = threading.Event()

    def post(http: Exchange, message: Json) -> bool:
        if "method" not in message:
            answers.append(message)
            answered.set()
            http.reply(202)
            return True
        if message["method"] != "tools/call":
            return False
        done = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}
        if message["params"]["name"] == "asks":
            http.events(QUESTION)
        else:
            http.events()
        answered.wait(20)
        http.wfile.write(b"data: %b\n\n" % json.dumps(done).encode())
        return True

    unruly.post = post
    pod = await ready(relay, client_capabilities=("roots",))
    first, other = [await pod.connected(capabilities={"roots": {}}) for _ in range(2)]
    waiting = asyncio.ensure_future(other.call("waits"))
    await came(unruly, "tools/call", 1)
    async with first.stream("POST", body("tools/call", 1, name="asks", arguments={})) as stream:
        question = await stream.next()
        assert question["method"] == "roots/list"
        await first.post({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
        assert "result" in await stream.next()
    assert "result" in await waiting
    assert answers == [{"jsonrpc": "2.0", "id": 7, "result": {"roots": []}}]
