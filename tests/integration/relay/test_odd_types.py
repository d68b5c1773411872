"""Values of types that nobody expects, one at a time, in whatever clients, servers and launcher say.

To take a value for what it should be is a TypeError in the compiled relay, and a surprise in any other: each
is refused, passed on or dropped, and never a defect.
"""

import functools
import json
import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from mcp_relay_api.status import RelayStatus
from relaykit.client import Client, Json, body
from relaykit.fakelauncher import FakeLauncher
from relaykit.pod import Pod
from relaykit.stateless import PREFIX, Caller

ODD: tuple[Any, ...] = (None, True, 7, -1.5, "odd", [], [1], {}, {"x": 1})
FEW: tuple[Any, ...] = (None, 7, "odd", [1], {"x": 1})
OFFERED: Json = {"roots": {}, "sampling": {}, "elicitation": {}}
ASKED: Json = {"method": "elicitation/create", "params": {"message": "Who?"}}
WISH: Json = {"resultType": "input_required", "inputRequests": {"q": ASKED}, "requestState": "s"}
RESULT: Json = {"content": [{"type": "text", "text": "x"}], "structuredContent": {"a": 1}, "_meta": {"m": 1}}
ERROR: Json = {"code": -32000, "message": "no", "data": {"why": "so"}}
HANDSHAKE: Json = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "logging": {}},
    "serverInfo": {"name": "fake", "version": "1"},
    "instructions": "be kind",
}
DISCOVERY: Json = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": HANDSHAKE["capabilities"],
    "resultType": "complete",
    "_meta": {PREFIX + "serverInfo": HANDSHAKE["serverInfo"]},
}
PARAMS: dict[str, Json] = {
    "tools/call": {"name": "x", "arguments": {"a": 1}, "_meta": {"progressToken": "t"}},
    "resources/read": {"uri": "file://a"},
    "resources/subscribe": {"uri": "file://a"},
    "resources/unsubscribe": {"uri": "file://a"},
    "logging/setLevel": {"level": "debug"},
    "vendor/any": {"a": {"b": 1}},
}
SENT: tuple[Json, ...] = (
    *(body(method, 1, **params) for method, params in PARAMS.items()),
    body("initialize", 2, protocolVersion="2025-11-25", capabilities=OFFERED, clientInfo={"name": "c"}),
    body("notifications/cancelled", requestId=1, reason="no"),
    body("notifications/progress", progressToken=1, progress=1),
    {"jsonrpc": "2.0", "id": 4294967297, "result": {"roots": []}},
    {"jsonrpc": "2.0", "id": 4294967297, "error": {"code": -1, "message": "no"}},
)
SAID: tuple[Json, ...] = (
    body("notifications/progress", progressToken=4294967297, progress=0.5),
    body("notifications/message", level="info", data="x", logger="l"),
    body("notifications/cancelled", requestId="q"),
    body("notifications/resources/updated", uri="file://a"),
    body("notifications/tools/list_changed", _meta={PREFIX + "subscriptionId": 4294967298}),
    body("vendor/news", a=1),
    body("sampling/createMessage", "q", messages=[], maxTokens=5),
    body("roots/list", 1),
    body("ping", 2),
    {"jsonrpc": "2.0", "id": 4294967299, "result": RESULT},
)
CONTROL: tuple[Json, ...] = (
    {"event": "oversized", "bytes": 99, "head": '{"jsonrpc":"2.0","id":4294967299,', "tail": "}"},
    {"event": "masked", "id": 1, "texts": ["a"]},
    {"event": "progress", "id": 1, "lines": ["a"]},
    {"event": "terminating", "drainSeconds": 6},
    {"event": "exit", "exitCode": 1, "signal": "SIGKILL", "reason": "Signaled", "message": "", "time": 1.5},
    {"event": "hello", "version": 1, "incarnation": "abc", "pid": 17, "startTime": 1.5, "linesTaken": 3},
)
ERAS = pytest.mark.parametrize("era", ["Legacy", "Modern"])


def retyped(value: Any, odd: tuple[Any, ...] = ODD) -> Iterator[Any]:
    """The value, with itself or one of its parts of another type."""
    yield from odd
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from ({**value, key: other} for other in retyped(inner, odd))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from ([*value[:at], other, *value[at + 1 :]] for other in retyped(inner, odd))


@pytest.fixture(autouse=True)
def no_defects(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    defects = [record for record in caplog.get_records("call") if record.levelno >= logging.ERROR]
    assert [logging.Formatter().format(record) for record in defects] == []


async def serving(pod: Pod, launcher: FakeLauncher, era: str, **settings: Any) -> None:
    """Start the relay in front of a server of this era."""
    launcher.answers["server/discover"] = lambda _message: {"result": DISCOVERY}
    launcher.answers["subscriptions/listen"] = lambda _message: None
    launcher.capabilities = HANDSHAKE["capabilities"]
    pod.configure(protocol=era, **settings)
    await pod.relay()
    await pod.until("Connected")


async def both(pod: Pod) -> tuple[Client, Caller]:
    """A client with a session, and one without."""
    return await pod.connected(capabilities=OFFERED), Caller(pod, capabilities=OFFERED, level="info")


async def met(pod: Pod, launcher: FakeLauncher, incarnation: str) -> RelayStatus:
    """The relay's status once it has met another process of the server."""
    launcher.greeting = [{**launcher.greeting[0], "incarnation": incarnation}]
    launcher.drop()
    status = await pod.status()
    while status.process is None or status.process.incarnation != incarnation:
        status = await pod.status(status.revision, 5)
    return status


def given(answer: Json, _message: Json) -> Json:
    return answer


async def replied(client: Client, message: Any, **headers: str | None) -> int:
    """The status of the reply."""
    try:
        return (await client.post(message, **headers)).status_code
    except httpx.TransportError as error:
        raise AssertionError(f"no reply to {json.dumps(message)}") from error


@ERAS
async def test_a_client_with_a_session_gets_a_reply(bare_pod: Pod, launcher: FakeLauncher, era: str) -> None:
    await serving(bare_pod, launcher, era)
    client = await bare_pod.connected(capabilities=OFFERED)
    for message in SENT:
        for odd in retyped(message):
            assert await replied(client, odd) < 500
    assert "result" in await client.call("any")


@ERAS
async def test_a_client_without_a_session_gets_a_reply(
    bare_pod: Pod, launcher: FakeLauncher, era: str
) -> None:
    await serving(bare_pod, launcher, era)
    caller, client = Caller(bare_pod, capabilities=OFFERED, level="info"), bare_pod.client()
    params = PARAMS | {"server/discover": {}}
    for message in [caller.message(method, 1, **told) for method, told in params.items()]:
        headers = caller.headers(message)
        del headers["authorization"]
        for odd in retyped(message):
            assert await replied(client, odd, **headers) < 500
    assert "result" in await caller.call("any")


@ERAS
async def test_an_answer_of_a_server_gets_to_its_client(
    bare_pod: Pod, launcher: FakeLauncher, era: str
) -> None:
    await serving(bare_pod, launcher, era, call_timeout=0.3)
    client, caller = await both(bare_pod)
    answers = [("result", odd) for told in (RESULT, WISH) for odd in retyped(told)]
    for member, odd in [*answers, *(("error", odd) for odd in retyped(ERROR))]:
        launcher.answers["tools/call"] = functools.partial(given, {member: odd})
        answer = await client.call("any")
        assert {"result", "error"} & set(answer), (member, odd)
        assert {"result", "error"} & set(await caller.call("any")), (member, odd)
    del launcher.answers["tools/call"]
    assert "result" in await client.call("any")


@ERAS
async def test_a_server_says_what_it_likes_during_a_call(
    bare_pod: Pod, launcher: FakeLauncher, era: str
) -> None:
    await serving(bare_pod, launcher, era)
    client, caller = await both(bare_pod)
    for message in SAID:
        for odd in retyped(message):

            def saying(_message: Json, line: bytes = json.dumps(odd).encode()) -> Json:
                launcher.say(line)
                return {"result": RESULT}

            launcher.answers["tools/call"] = saying
            assert "result" in await client.call("any", 1), odd
            assert "result" in await caller.call("any"), odd
    assert launcher.connections == 1


@ERAS
@pytest.mark.timeout(120)
async def test_a_handshake_ends_with_a_status(bare_pod: Pod, launcher: FakeLauncher, era: str) -> None:
    method, usual = ("initialize", HANDSHAKE) if era == "Legacy" else ("server/discover", DISCOVERY)
    await serving(bare_pod, launcher, era)
    answers = [{"result": odd} for odd in retyped(usual, FEW)] + [
        {"error": odd} for odd in retyped(ERROR, FEW)
    ]
    for number, answer in enumerate(answers):
        launcher.answers[method] = functools.partial(given, answer)
        status = await met(bare_pod, launcher, f"process-{number}")
        while status.state == "Connecting":
            status = await bare_pod.status(status.revision, 5)
        assert status.state in {"Connected", "Refused"}, answer


async def test_a_launcher_says_what_it_likes(bare_pod: Pod, launcher: FakeLauncher) -> None:
    await serving(bare_pod, launcher, "Legacy")
    for message in CONTROL:
        for odd in retyped(message):
            launcher.say(b"\0" + json.dumps(odd).encode())
    assert (await met(bare_pod, launcher, "another")).exit is None
