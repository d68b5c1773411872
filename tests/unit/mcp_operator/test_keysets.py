"""Issuers are asked for their keys in time, not too often, and by the right way."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from mcp_operator.adapters.errors import IssuerError, KeysRefusedError, KubeError
from mcp_operator.adapters.issuers import Issuers
from mcp_operator.adapters.kube import Kube
from mcp_operator.core import keys
from mcp_operator.core.api.spec import Jwt
from mcp_operator.core.observation import KeysView, RelayView
from mcp_operator.handlers.keysets import KeySets
from mcp_relay_api.status import RelayStatus

KEY, OTHER = ("default", "time"), ("default", "other")
ISSUER = "https://issuer.example"
CLUSTER = "https://kubernetes.default.svc"
JWT = Jwt(issuer=ISSUER, audiences=("a",))
OPENID, OAUTH = keys.places(ISSUER)
PLACE = f"{ISSUER}/keys"


def key(name: str) -> dict[str, str]:
    return {"kty": "RSA", "kid": name, "n": "AQ", "e": "AQAB"}


MARK = keys.mark(ISSUER, None)
EMPTY = keys.empty(MARK).document


def digest(*names: str, source: str = MARK) -> str:
    return keys.key_set({"keys": [key(name) for name in names]}, source).digest


def seen(*names: str, source: str = MARK) -> KeysView:
    """What is known when the issuer has these keys."""
    return KeysView(digest(*names, source=source), source=source)


class World:
    """Issuers and an API server: what they answer, and what they were asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {
            OPENID: {"issuer": ISSUER, "jwks_uri": PLACE},
            PLACE: {"keys": [key("first")]},
        }
        self.cluster: dict[str, Any] = {"/openid/v1/jwks": {"keys": [key("cluster")]}}
        self.cluster[keys.OPENID] = {"issuer": CLUSTER, "jwks_uri": "https://10.0.0.1/openid/v1/jwks"}
        self.asked: list[str] = []
        self.more = asyncio.Event()
        self.woken: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    async def document(self, url: str) -> Any:
        self.asked.append(url)
        self.more.set()
        answer = (self.cluster if url.startswith("/") else self.answers).get(url)
        if answer is None:
            raise KubeError(url) if url.startswith("/") else IssuerError("HTTP 404", absent=True)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def sets(self, refresh: float = 60, cooldown: float = 30, max_age: float = 3600) -> KeySets:
        kube, issuers = cast("Kube", self), cast("Issuers", self)
        return KeySets(kube, issuers, self.woken.put_nowait, refresh, cooldown, max_age)

    async def until_asked(self, times: int) -> None:
        while len(self.asked) < times:
            self.more.clear()
            await asyncio.wait_for(self.more.wait(), 5)

    async def wake(self) -> tuple[str, str]:
        return await asyncio.wait_for(self.woken.get(), 5)


@pytest.fixture
def net() -> World:
    return World()


@pytest.fixture
async def sets(net: World) -> AsyncIterator[KeySets]:
    made = net.sets()
    yield made
    await made.close()


async def known(net: World, sets: KeySets, jwt: Jwt = JWT) -> KeysView:
    """What is known once the issuer was asked."""
    assert sets.view(KEY, jwt, None) == KeysView(source=keys.mark(jwt.issuer, jwt.jwks_uri))
    assert await net.wake() == KEY
    found = sets.view(KEY, jwt, None)
    assert found is not None
    return found


async def test_the_keys_are_where_the_issuer_says(net: World, sets: KeySets) -> None:
    assert await known(net, sets) == seen("first")
    document = sets.document(KEY)
    assert document is not None
    assert b'"first"' in document
    assert net.asked == [keys.OPENID, OPENID, PLACE]


async def test_an_issuer_without_openid_is_asked_by_oauth(net: World, sets: KeySets) -> None:
    net.answers[OAUTH] = net.answers.pop(OPENID)
    assert await known(net, sets) == seen("first")


async def test_a_place_in_the_spec_is_asked_at_once(net: World, sets: KeySets) -> None:
    named = Jwt(issuer=ISSUER, audiences=("a",), jwks_uri=PLACE)
    assert await known(net, sets, named) == seen("first", source=keys.mark(ISSUER, PLACE))
    assert net.asked == [PLACE]


async def test_the_issuer_of_the_cluster_is_asked_by_the_connection_to_the_api_server(
    net: World, sets: KeySets
) -> None:
    own = Jwt(issuer=CLUSTER, audiences=("a",))
    assert await known(net, sets, own) == seen("cluster", source=keys.mark(CLUSTER, None))
    assert net.asked == [keys.OPENID, "/openid/v1/jwks"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({OPENID: IssuerError("it does not answer: x")}, f"spec.auth.jwt.issuer: {ISSUER}: the keys cannot"),
        ({OPENID: None}, "HTTP 404"),
        ({OPENID: {"issuer": "https://evil.example", "jwks_uri": PLACE}}, "another issuer"),
        ({PLACE: {"no": "keys"}}, "no JWK Set"),
        ({PLACE: IssuerError("it answers HTTP 500")}, "HTTP 500"),
    ],
)
async def test_what_hinders_is_told_with_its_field(
    net: World, sets: KeySets, changes: dict[str, Any], words: str
) -> None:
    net.answers |= changes
    found = await known(net, sets)
    assert found.digest is None
    assert words in found.problem
    assert sets.document(KEY) == EMPTY


async def test_servers_with_one_issuer_share_its_keys_until_the_last_one_goes(
    net: World, sets: KeySets
) -> None:
    found = await known(net, sets)
    assert sets.view(OTHER, JWT, None) == found
    assert len(net.asked) == 3
    sets.forget(KEY)
    assert sets.view(OTHER, JWT, None) == found
    assert sets.view(OTHER, None, None) is None
    assert await known(net, sets) == found
    assert len(net.asked) == 6


async def test_keys_are_fetched_again_and_who_uses_them_is_woken_only_for_other_ones(net: World) -> None:
    sets = net.sets(refresh=0.01, cooldown=0)
    await known(net, sets)
    await net.until_asked(12)
    assert net.woken.empty()
    net.answers[PLACE] = {"keys": [key("first"), key("second")]}
    assert await net.wake() == KEY
    assert sets.view(KEY, JWT, None) == seen("first", "second")
    net.answers[PLACE] = IssuerError("it answers HTTP 503")
    await net.wake()
    later = sets.view(KEY, JWT, None)
    assert later is not None
    assert later.digest == digest("first", "second")
    assert later.problem.endswith("it answers HTTP 503; the keys that it sent before are used")
    await sets.close()


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ([], "no public key with an id"),
        ([{"kty": "EC", "kid": "a", "crv": "secp256k1", "x": "AQ", "y": "AQ"}], "no public key with an id"),
        ([key(f"{number}") for number in range(keys.MAX_KEYS + 1)], "more than 64 keys"),
    ],
)
async def test_a_set_without_usable_keys_takes_the_place_of_the_one_before(
    net: World, sent: list[Any], words: str
) -> None:
    sets = net.sets(refresh=0.01, cooldown=0)
    await known(net, sets)
    net.answers[PLACE] = {"keys": sent}
    await net.wake()
    later = sets.view(KEY, JWT, None)
    assert later is not None
    assert later.digest == keys.empty(MARK).digest
    assert words in later.problem
    assert later.problem.endswith("nobody is let in")
    assert sets.document(KEY) == EMPTY
    net.answers[PLACE] = {"keys": [key("second")]}
    await sets.close()


@pytest.mark.parametrize(
    "broken", [IssuerError("it answers HTTP 503"), {"error": "broken"}, {"keys": "none"}]
)
async def test_keys_whose_issuer_cannot_be_asked_are_used_for_a_time_and_no_longer(
    net: World, world: Any, broken: Any
) -> None:
    sets = net.sets(refresh=0.01, cooldown=0)
    await known(net, sets)
    net.answers[PLACE] = broken
    await net.wake()
    kept = sets.view(KEY, JWT, told(world, 0))
    assert kept is not None
    assert (kept.digest, "are used" in kept.problem) == (digest("first"), True)
    sets._max_age = 0
    sets.view(KEY, JWT, told(world, 1))
    await net.wake()
    ended = sets.view(KEY, JWT, None)
    assert ended is not None
    assert (ended.digest, sets.document(KEY)) == (keys.empty(MARK).digest, EMPTY)
    assert ended.problem.endswith("keys from before are used no more")
    net.answers[PLACE] = {"keys": [key("first")]}
    sets.view(KEY, JWT, told(world, 2))
    await net.wake()
    assert sets.view(KEY, JWT, None) == seen("first")
    await sets.close()


async def test_an_operator_that_never_reached_the_issuer_ends_the_keys_that_it_finds(net: World) -> None:
    net.answers[PLACE] = IssuerError("it answers HTTP 503")
    sets = net.sets(refresh=0.01, cooldown=0, max_age=0.3)
    assert (await known(net, sets)).digest is None
    await net.wake()
    ended = sets.view(KEY, JWT, None)
    assert ended is not None
    assert ended.digest == keys.empty(MARK).digest
    await sets.close()


def told(world: Any, unknown: int, instance: str = "one") -> RelayStatus:
    found: RelayStatus = world.report(instance=instance, keys={"digest": "x", "unknown": unknown})
    return found


async def test_an_unknown_key_has_the_issuer_asked_before_its_time(net: World, world: Any) -> None:
    sets = net.sets(refresh=60, cooldown=0.05)
    sets.view(KEY, JWT, told(world, 4))
    await net.wake()
    net.answers[PLACE] = {"keys": [key("second")]}
    sets.view(KEY, JWT, told(world, 4))
    await asyncio.sleep(0.2)
    assert len(net.asked) == 3, "nothing new was unknown"
    sets.view(KEY, JWT, told(world, 5))
    assert await net.wake() == KEY
    assert sets.view(KEY, JWT, told(world, 5)) == seen("second")
    net.answers[PLACE] = {"keys": [key("third")]}
    sets.view(KEY, JWT, told(world, 1, "restarted"))
    assert await net.wake() == KEY
    await sets.close()


async def test_unknown_keys_without_end_have_it_asked_no_more_than_once_in_its_time(
    net: World, world: Any
) -> None:
    sets = net.sets(refresh=60, cooldown=30)
    await known(net, sets)
    for unknown in range(100):
        sets.view(KEY, JWT, told(world, unknown))
        await asyncio.sleep(0)
    assert len(net.asked) == 3
    await sets.close()


async def test_a_defect_is_no_end_of_it(net: World) -> None:
    sets = net.sets(cooldown=0.01)
    net.answers[PLACE] = ValueError("a defect")
    sets.view(KEY, JWT, None)
    await net.wake()
    net.answers[PLACE] = {"keys": [key("first")]}
    assert await known(net, sets) == seen("first")
    await sets.close()


def wired(net: World, setup: Any) -> KeySets:
    """Key sets that the reconcile of `setup` uses."""
    sets = net.sets()
    setup.reconcile._key_sets = setup.reconcile._observer._key_sets = sets
    return sets


async def test_the_reconcile_brings_the_keys_until_the_relay_has_them(
    net: World, setup: Any, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = wired(net, setup)
    taken: list[bytes] = []
    away = False

    async def bring(_key: Any, document: bytes) -> bool:
        taken.append(document)
        return not away

    monkeypatch.setattr(setup.reconcile._relays, "bring_keys", bring)
    setup.server(auth={"type": "JWT", "jwt": {"issuer": ISSUER, "audiences": ["a"]}})
    setup.view = RelayView(world.report(keys={"digest": None, "unknown": 0}))
    await setup.reconcile(KEY)
    await net.wake()
    away = True
    again = await setup.reconcile(KEY)
    assert again is not None
    assert again <= 2
    away = False
    await setup.reconcile(KEY)
    assert taken == [sets.document(KEY)] * 2
    setup.view = RelayView(world.report(keys={"digest": digest("first"), "unknown": 0}))
    await setup.reconcile(KEY)
    assert len(taken) == 2
    await sets.close()


async def test_a_place_that_cannot_be_asked_does_not_leave_the_keys_of_another_one_in_use(
    net: World, setup: Any, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = wired(net, setup)
    taken: list[bytes] = []

    async def bring(_key: Any, document: bytes) -> bool:
        taken.append(document)
        return True

    monkeypatch.setattr(setup.reconcile._relays, "bring_keys", bring)
    place = "https://issuer.example/away"
    net.answers[place] = IssuerError("it answers HTTP 404")
    jwt = {"issuer": ISSUER, "audiences": ["a"], "jwksURI": place}
    setup.server(auth={"type": "JWT", "jwt": jwt})
    for source, brought in ((keys.mark(ISSUER, place), False), (MARK, True)):
        told = {"digest": digest("first"), "unknown": 0, "usable": 1, "source": source}
        setup.view = RelayView(world.report(keys=told))
        await setup.reconcile(KEY)
        if not brought:
            await net.wake()
        await setup.reconcile(KEY)
        assert set(taken) <= {keys.empty(keys.mark(ISSUER, place)).document}
        assert bool(taken) is brought
    await sets.close()


async def test_a_set_that_the_relay_refuses_is_told_in_the_status(
    net: World, setup: Any, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = wired(net, setup)

    async def bring(_key: Any, _document: bytes) -> bool:
        raise KeysRefusedError("HTTP 400", status=400)

    monkeypatch.setattr(setup.reconcile._relays, "bring_keys", bring)
    setup.server(auth={"type": "JWT", "jwt": {"issuer": ISSUER, "audiences": ["a"]}})
    setup.view = RelayView(world.report(keys={"digest": "old", "unknown": 0}))
    await setup.reconcile(KEY)
    await net.wake()
    later = await setup.reconcile(KEY)
    assert later is not None
    assert later <= 30
    assert await net.wake() == KEY
    view = sets.view(KEY, JWT, None)
    assert view is not None
    assert view.refusal == "HTTP 400"
    await setup.reconcile(KEY)
    assert net.woken.empty(), "what is known wakes nobody"
    await sets.close()
