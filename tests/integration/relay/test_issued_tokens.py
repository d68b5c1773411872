"""Clients with tokens of an issuer (JWT): who is let in, as whom, for how long; and who is not."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from mcp_operator.adapters.errors import KeysRefusedError
from mcp_operator.adapters.relay import Endpoint, Relay
from mcp_operator.core import keys
from mcp_relay_api import paths
from mcp_sidecar.core.bucket import Limits
from relaykit.client import Client, body
from relaykit.issuer import ISSUER, RULES, Issuer, bad_tokens
from relaykit.pod import ADMIN, ADMIN_TOKEN, Pod
from relaykit.stateless import Caller
from relaykit.waiting import eventually

METADATA = "/.well-known/oauth-protected-resource"


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    made = Issuer()
    made.add("curve", "ES256")
    made.add("edwards", "EdDSA")
    return made


@pytest.fixture
async def pod(make_pod: Any, issuer: Issuer) -> Pod:
    """A relay that lets in whom the issuer knows."""
    made: Pod = await make_pod(token=None, jwt=RULES, http_sse=True)
    assert (await bring(made, issuer.jwks())).status_code == 200
    await made.until("Connected")
    return made


@pytest.fixture
async def alice(pod: Pod, issuer: Issuer) -> AsyncIterator[Client]:
    async with Client(pod.url, issuer.token()) as client:
        yield await client.connect()


async def bring(pod: Pod, jwks: bytes, headers: dict[str, str] | None = None) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as http:
        place = pod.admin_url + paths.KEYS_PATH
        return await http.post(place, content=jwks, headers=ADMIN if headers is None else headers)


async def asked(pod: Pod, token: str | None, **headers: str | None) -> httpx.Response:
    async with Client(pod.url, token) as client:
        return await client.post(body("tools/list", 1), **headers)


async def lets_in(client: Client, status: int = 200) -> bool:
    return (await client.post(body("tools/list", 7))).status_code == status


async def test_no_bad_token_opens_anything(pod: Pod, issuer: Issuer, alice: Client) -> None:
    bad = bad_tokens(issuer)
    replies = {name: await asked(pod, token, mcp_session_id=alice.sid) for name, token in bad.items()}
    assert {name: reply.status_code for name, reply in replies.items()} == dict.fromkeys(bad, 401)
    assert {reply.text for reply in replies.values()} == {'{"error":"Unauthorized"}'}
    told = {name: reply.headers["www-authenticate"] for name, reply in replies.items()}
    assert [name for name, text in told.items() if 'error="invalid_token"' not in text] == ["nothing"]
    assert all("alice" not in text and "evil" not in text for text in told.values())
    assert await lets_in(alice)


@pytest.mark.parametrize(
    ("kid", "algorithm"), [("first", "RS512"), ("first", "PS256"), ("curve", "ES256"), ("edwards", "EdDSA")]
)
async def test_every_asymmetric_algorithm_is_taken(
    pod: Pod, issuer: Issuer, kid: str, algorithm: str
) -> None:
    async with Client(
        pod.url, issuer.token(kid=kid, algorithm=algorithm, aud=["x", RULES.audiences[0]])
    ) as one:
        await one.connect()
        assert await lets_in(one)


async def test_without_a_token_no_path_and_no_method_tells_anything(pod: Pod) -> None:
    base = pod.url.removesuffix("/mcp")
    async with httpx.AsyncClient(trust_env=False) as http:
        for path in ("/mcp", "/", "/sse", "/messages", "/status", f"{METADATA}/", "/.well-known/x"):
            for method in ("POST", "GET", "DELETE", "PUT", "OPTIONS", "HEAD"):
                for headers in ({}, {"authorization": "Basic YTpi"}, {"authorization": "Bearer x"}):
                    reply = await http.request(method, base + path, headers=headers)
                    assert (reply.status_code, reply.text) in ((401, '{"error":"Unauthorized"}'), (401, ""))


async def test_the_metadata_says_without_a_token_whose_tokens_are_wanted(pod: Pod) -> None:
    async with httpx.AsyncClient(trust_env=False) as http:
        challenge = (await http.post(pod.url)).headers["www-authenticate"]
        place = pod.url.replace("/mcp", f"{METADATA}/mcp")
        assert challenge == f'Bearer realm="mcp", resource_metadata="{place}"'
        for url in (place, place.removesuffix("/mcp")):
            told = (await http.get(url)).json()
            assert (told["resource"], told["authorization_servers"]) == (pod.url, [ISSUER])
            assert (await http.post(url)).status_code == 405
        assert (await http.get(place, headers={"host": "evil.example"})).status_code == 403
        refused = await http.post(pod.url, headers={"host": "evil.example"})
        assert refused.headers["www-authenticate"] == 'Bearer realm="mcp"'


async def test_a_host_that_is_no_name_is_not_repeated_in_a_header(make_pod: Any) -> None:
    pod = await make_pod(token=None, jwt=RULES, allowed_hosts=("*",))
    async with httpx.AsyncClient(trust_env=False) as http:
        for host, shown in (("tools.example:80", True), ('x", error="y', False), ("a b", False)):
            reply = await http.post(pod.url, headers={"host": host})
            assert reply.status_code == 401
            assert ("resource_metadata" in reply.headers["www-authenticate"]) is shown
            assert "error" not in reply.headers["www-authenticate"]


async def test_a_resource_of_ones_own_stands_in_metadata_and_challenge(make_pod: Any, issuer: Issuer) -> None:
    resource = "https://tools.example/team/mcp"
    pod = await make_pod(token=None, jwt=replace(RULES, resource=resource))
    async with httpx.AsyncClient(trust_env=False) as http:
        place = f"https://tools.example{METADATA}/team/mcp"
        assert f'resource_metadata="{place}"' in (await http.post(pod.url)).headers["www-authenticate"]
        told = (await http.get(pod.url.replace("/mcp", f"{METADATA}/mcp"))).json()
        assert told["resource"] == resource


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_a_session_of_another_subject_does_not_exist(
    pod: Pod, issuer: Issuer, alice: Client, method: str
) -> None:
    async with Client(pod.url, issuer.token("bob")) as bob:
        unknown = await bob.post(body("tools/list", 1), mcp_session_id="x.y")
        content = body("tools/list", 1) if method == "POST" else None
        headers = bob.headers(mcp_session_id=alice.sid)
        reply = await bob.http.request(method, pod.url, json=content, headers=headers)
        assert reply.status_code == unknown.status_code == 404
        told, wanted = reply.json()["error"], unknown.json()["error"]
        assert told["data"].pop("server_uptime_seconds") <= wanted["data"].pop("server_uptime_seconds") + 5
        assert told == wanted
    assert await lets_in(alice)


async def test_with_a_process_for_each_client_a_session_is_its_subjects_too(
    make_pod: Any, issuer: Issuer
) -> None:
    pod = await make_pod(token=None, jwt=RULES, jwks=issuer.jwks(), session_mode="PerClient")
    await pod.until("Connected")
    async with Client(pod.url, issuer.token()) as alice, Client(pod.url, issuer.token("bob")) as bob:
        await alice.connect()
        await bob.connect()
        own, bob.sid = bob.sid, alice.sid
        assert (await bob.post(body("tools/list", 1))).status_code == 404
        assert (await bob.delete()).status_code == 404
        bob.sid = own
        assert await lets_in(alice)
        assert await lets_in(bob)


async def test_who_is_not_listed_is_turned_away_whatever_the_path(make_pod: Any, issuer: Issuer) -> None:
    pod = await make_pod(token=None, jwt=replace(RULES, subjects=("team:*",)), jwks=issuer.jwks())
    await pod.until("Connected")
    async with Client(pod.url, issuer.token("team:alice")) as client:
        await client.connect()
        client.token = issuer.token("other:bob")
        for url in (pod.url, pod.url.replace("/mcp", "/x")):
            reply = await client.http.post(url, headers=client.headers())
            assert (reply.status_code, "not among those" in reply.text) == (403, True)
        assert "www-authenticate" not in reply.headers


async def test_a_session_goes_on_with_the_subjects_next_token(
    pod: Pod, issuer: Issuer, alice: Client
) -> None:
    alice.token = issuer.token(kid="curve", algorithm="ES256")
    assert await lets_in(alice)


async def test_an_event_stream_takes_no_message_of_another_subject(pod: Pod, issuer: Issuer) -> None:
    base = pod.url.removesuffix("/mcp")
    mine = {"authorization": f"Bearer {issuer.token()}"}
    async with (
        httpx.AsyncClient(trust_env=False) as http,
        http.stream("GET", f"{base}/sse", headers=mine) as stream,
    ):
        lines = stream.aiter_lines()
        place = [await anext(lines), await anext(lines)][1].removeprefix("data: ")
        for subject, status in (("bob", 404), ("alice", 202)):
            token = issuer.token(subject)
            reply = await http.post(
                base + place, json=body("ping", 1), headers={"authorization": f"Bearer {token}"}
            )
            assert reply.status_code == status


async def test_a_token_is_refused_after_its_end_on_a_connection_that_stays_open(
    pod: Pod, issuer: Issuer
) -> None:
    async with Client(pod.url, issuer.token()) as client:
        await client.connect()
        end = time.time() + 2
        client.token = issuer.token(exp=end)
        statuses: list[tuple[float, int, float]] = []
        while not statuses or statuses[-1][0] < end + 0.2:  # one at least is sent after the end
            sent = time.time()
            status = (await client.post(body("tools/list", 1))).status_code
            statuses.append((sent, status, time.time()))
            await asyncio.sleep(0.02)
        assert all(status == 200 for _, status, answered in statuses if answered < end)
        assert all(status == 401 for sent, status, _ in statuses if sent >= end)
        assert statuses[-1][1] == 401
        refused = await client.post(body("tools/list", 1))
        assert (
            'error="invalid_token", error_description="The token has expired"'
            in refused.headers["www-authenticate"]
        )
        client.token = issuer.token()
        assert await lets_in(client)


async def test_a_stream_ends_with_the_token_that_opened_it(pod: Pod, issuer: Issuer) -> None:
    async with Client(pod.url, issuer.token()) as client:
        await client.connect()
        client.token = issuer.token(exp=time.time() + 2)
        async with client.stream() as stream:
            await stream.commented(1)
            await asyncio.wait_for(stream.ended.wait(), 10)
        client.token = issuer.token()
        async with client.stream() as again:
            await again.commented(1)
            assert not again.ended.is_set()


async def test_a_subscription_without_session_ends_with_its_token(pod: Pod, issuer: Issuer) -> None:
    caller = Caller(pod, token=issuer.token(exp=time.time() + 2))
    wanted = caller.message("subscriptions/listen", notifications={"toolsListChanged": True})
    async with caller.stream(wanted) as stream:
        assert "acknowledged" in (await stream.next())["method"]
        await asyncio.wait_for(stream.ended.wait(), 10)


async def test_keys_rotate_without_a_gap_and_a_removed_one_opens_nothing(
    pod: Pod, issuer: Issuer, alice: Client
) -> None:
    rotated = Issuer()
    rotated.keys = dict(issuer.keys)
    rotated.add("second", "ES256")
    fresh = rotated.token(kid="second", algorithm="ES256")
    assert (await asked(pod, fresh)).status_code == 401
    assert await reported(pod, 1)
    await bring(pod, rotated.jwks())
    old, alice.token = alice.token, fresh
    assert await lets_in(alice)
    alice.token = old
    assert await lets_in(alice)
    rotated.remove("first")
    await bring(pod, rotated.jwks())
    await eventually(lambda: lets_in(alice, 401))
    alice.token = fresh
    assert await lets_in(alice)


async def reported(pod: Pod, unknown: int) -> bool:
    async def told() -> bool:
        status = await pod.status()
        return status.keys is not None and status.keys.unknown == unknown

    await eventually(told)
    return True


async def test_without_keys_nobody_is_let_in_and_that_is_said(make_pod: Any, issuer: Issuer) -> None:
    pod = await make_pod(token=None, jwt=RULES)
    status = await pod.until("Connected")
    assert status.keys is not None
    assert status.keys.digest is None
    assert (await asked(pod, None)).status_code == 401
    assert (await asked(pod, "garbage")).status_code == 401
    reply = await asked(pod, issuer.token())
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
    for wrong in (
        b"",
        b"[]",
        b'{"keys":{}}',
        b"\xff",
    ):
        assert (await bring(pod, wrong)).status_code == 400
    assert (await bring(pod, issuer.jwks(), {})).status_code == 401
    assert (await asked(pod, issuer.token())).status_code == 503
    await bring(pod, issuer.jwks())
    assert (await asked(pod, issuer.token())).status_code == 400, "no session yet, but let in"
    later = (await pod.status(status.revision, 5)).keys
    assert later is not None
    assert later.digest is not None


async def test_what_the_operator_makes_of_an_issuers_keys_is_taken_under_its_name(
    make_pod: Any, issuer: Issuer
) -> None:
    pod = await make_pod(token=None, jwt=RULES)
    await pod.until("Connected")
    found = keys.key_set(json.loads(issuer.jwks()))
    async with Relay(Endpoint("127.0.0.1", ADMIN_TOKEN, pod.admin_port)) as relay:
        await relay.bring_keys(found.document)
        told = (await pod.status()).keys
        assert told is not None
        assert told.digest == found.digest
        with pytest.raises(KeysRefusedError, match="HTTP 400"):
            await relay.bring_keys(b"{}")
    assert (await asked(pod, issuer.token())).status_code == 400, "no session yet, but let in"


async def test_a_restarted_relay_knows_the_keys_that_it_had(pod: Pod, issuer: Issuer, alice: Client) -> None:
    before = (await pod.status()).keys
    await pod.stop_relay()
    await pod.relay()
    await pod.until("Connected")
    assert (await pod.status()).keys == before
    assert await lets_in(alice)


async def test_a_server_with_another_kind_of_token_takes_no_keys(make_pod: Any, issuer: Issuer) -> None:
    pod = await make_pod()
    assert (await bring(pod, issuer.jwks())).status_code == 404
    assert (await pod.status()).keys is None
    async with httpx.AsyncClient(trust_env=False) as http:
        assert (await http.get(pod.url.replace("/mcp", METADATA))).status_code == 401


async def test_private_parts_of_keys_and_weak_keys_are_no_use(make_pod: Any, issuer: Issuer) -> None:
    pod = await make_pod(token=None, jwt=RULES)
    entry = {**issuer.jwk("first"), "use": "enc"}
    weak = {"kty": "RSA", "kid": "w", "n": "u" * 171, "e": "AQAB"}
    assert (await bring(pod, json.dumps({"keys": [entry, weak]}).encode())).status_code == 200
    told = (await pod.status()).keys
    assert told is not None
    assert told.usable == 0
    assert (await asked(pod, issuer.token())).status_code == 503


@pytest.mark.parametrize(
    "jwks",
    [
        keys.empty("place").document,
        b'{"keys":[{"kty":"EC","kid":"first","crv":"secp256k1","x":"AQ","y":"AQ"}],"source":"place"}',
    ],
)
async def test_a_set_without_usable_keys_takes_back_all_that_were_there_for_good(
    pod: Pod, alice: Client, jwks: bytes
) -> None:
    assert (await bring(pod, jwks)).status_code == 200
    await eventually(lambda: lets_in(alice, 503))  # a connection is asked about anew within a second
    reply = await alice.post(body("tools/list", 7))
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
    told = (await pod.status()).keys
    assert told is not None
    assert (told.usable, told.source) == (0, "place")
    await pod.stop_relay()
    await pod.relay()
    await pod.until("Connected")
    assert (await pod.status()).keys == told
    assert await lets_in(alice, 503)


async def test_one_subject_with_all_sessions_keeps_no_other_out(make_pod: Any, issuer: Issuer) -> None:
    pod = await make_pod(token=None, jwt=RULES, jwks=issuer.jwks(), max_clients=2)
    await pod.until("Connected")
    async with (
        Client(pod.url, issuer.token()) as one,
        Client(pod.url, issuer.token()) as two,
        Client(pod.url, issuer.token()) as three,
        Client(pod.url, issuer.token("bob")) as bob,
    ):
        await one.connect()
        await two.connect()
        async with one.stream() as first, two.stream() as second:
            await first.commented(1)
            await second.commented(1)
            await bob.connect()
            await asyncio.wait_for(first.ended.wait(), 10)
            assert await lets_in(one, 404)
            reply = await three.post(body("initialize", 1))
            assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
        assert await lets_in(bob)


async def test_one_subject_with_all_processes_keeps_no_other_out(make_pod: Any, issuer: Issuer) -> None:
    pod = await make_pod(token=None, jwt=RULES, jwks=issuer.jwks(), session_mode="PerClient", max_processes=2)
    await pod.until("Connected")
    async with (
        Client(pod.url, issuer.token()) as one,
        Client(pod.url, issuer.token()) as two,
        Client(pod.url, issuer.token("bob")) as bob,
    ):
        await one.connect()
        await two.connect()
        async with one.stream() as first, two.stream():
            await first.commented(1)
            await bob.connect()
            await asyncio.wait_for(first.ended.wait(), 10)
            assert await lets_in(one, 404)
            assert await lets_in(bob)


async def test_limits_count_for_the_subject_in_all_its_sessions_and_without_any(
    make_pod: Any, issuer: Issuer, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    limits = Limits(per_minute=1, burst=4)
    pod: Pod = await make_pod(token=None, jwt=RULES, limits=limits, audit=True)
    assert (await bring(pod, issuer.jwks())).status_code == 200
    await pod.until("Connected")
    async with (
        Client(pod.url, issuer.token()) as one,
        Client(pod.url, issuer.token()) as two,
        Client(pod.url, issuer.token("bob")) as other,
    ):
        await one.connect()
        await two.connect()
        assert await lets_in(one)
        assert await lets_in(two)
        for client in (one, two):
            assert await lets_in(client, 429)
        caller = Caller(pod)
        message = caller.message("tools/list")
        bearer = {"authorization": f"Bearer {issuer.token()}"}
        assert (await caller.post(message, **bearer)).status_code == 429
        await other.connect()
        assert await lets_in(other)
    lines = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert {line["outcome"] for line in lines if line["subject"].endswith("alice")} == {"ok", "limited"}
    assert {line["outcome"] for line in lines if line["subject"].endswith("bob")} == {"ok"}
