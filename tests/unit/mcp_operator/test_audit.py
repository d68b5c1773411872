"""The audit: what a watch did not tell is noticed, told, and in the end fails the liveness probe."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from mcp_operator.adapters.errors import UnavailableError
from mcp_operator.adapters.kinds import PODS, SERVERS, WATCHED, Kind
from mcp_operator.adapters.kube import Kube
from mcp_operator.handlers import audit
from mcp_operator.handlers.audit import Audit
from mcp_operator.handlers.cache import Cache

Json = dict[str, Any]


def thing(name: str, version: int, uid: str = "") -> Json:
    return {
        "metadata": {
            "namespace": "default", "name": name, "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
        }
    }  # fmt: skip


class Told(list[tuple[Kind, str]]):
    """What was told, in order; the first of it can be waited for."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    async def get(self) -> tuple[Kind, str]:
        await self.event.wait()
        return self[0]


class World:
    """What the API server would list."""

    def __init__(self) -> None:
        self.objects: dict[Kind, dict[str, Json]] = {kind: {} for kind in WATCHED}
        self.failures = 0
        self.scopes: list[str | None] = []

    def put(self, kind: Kind, found: Json) -> None:
        self.objects[kind][found["metadata"]["name"]] = found

    async def listing(
        self, kind: Kind, namespace: str | None, metadata_only: bool = False
    ) -> AsyncIterator[Json]:
        self.scopes.append(namespace)
        if self.failures:
            self.failures -= 1
            raise UnavailableError("away")
        for found in list(self.objects[kind].values()):
            yield found

    async def read(self, kind: Kind, namespace: str, name: str) -> Json | None:
        return self.objects[kind].get(name)


Parts = tuple[World, Cache, Told, Audit]


@pytest.fixture
def world_of_objects(monkeypatch: pytest.MonkeyPatch) -> Parts:
    monkeypatch.setattr(audit, "LAG_SECONDS", 0.0)
    monkeypatch.setattr(audit, "RETRY_SECONDS", 0.0)
    world, cache, told = World(), Cache(), Told()

    def tell(kind: Kind, found: Json) -> None:
        told.append((kind, found["metadata"]["name"]))
        told.event.set()

    return world, cache, told, Audit(cast("Kube", world), cache, ("one", "two"), tell, 300)


async def test_the_cache_is_filled_before_anything_is_decided_also_when_the_api_server_is_late(
    world_of_objects: Parts,
) -> None:
    world, cache, _, made = world_of_objects
    world.put(SERVERS, thing("time", 1))
    world.failures = 3
    await made.prime()
    assert cache.get(SERVERS, ("default", "time")) is not None
    assert set(world.scopes) == {"one", "two"}


async def test_what_a_watch_missed_is_told(world_of_objects: Parts) -> None:
    world, cache, told, made = world_of_objects
    cache.put(PODS, thing("gone", 5))
    cache.put(PODS, thing("changed", 6))
    cache.put(PODS, thing("replaced", 7, uid="old"))
    cache.put(PODS, thing("same", 8))
    world.put(PODS, thing("changed", 10))
    world.put(PODS, thing("replaced", 11, uid="new"))
    world.put(PODS, thing("same", 8))
    world.put(PODS, thing("new", 12))
    await made._compare(PODS)
    assert sorted(set(told)) == sorted((PODS, name) for name in ("gone", "changed", "replaced", "new"))
    assert cache.get(PODS, ("default", "gone")) is None
    assert {key[1] for key, _ in cache.items(PODS)} == {"changed", "replaced", "same", "new"}


async def test_a_watch_that_is_ahead_of_the_list_has_missed_nothing(world_of_objects: Parts) -> None:
    world, cache, told, made = world_of_objects
    cache.put(PODS, thing("x", 9))
    world.put(PODS, thing("x", 8))
    await made._compare(PODS)
    assert told == []
    assert made.deaf() == []


async def test_a_watch_that_misses_things_again_and_again_is_deaf(world_of_objects: Parts) -> None:
    world, _, _, made = world_of_objects
    for version in range(audit.DEAF_LIMIT):
        assert made.deaf() == []
        world.put(PODS, thing("x", version + 1))
        await made._compare(PODS)
    assert made.deaf() == ["pods"]
    await made._compare(PODS)
    assert made.deaf() == []


async def test_what_the_cache_will_not_take_in_makes_no_watch_deaf(world_of_objects: Parts) -> None:
    world, cache, told, made = world_of_objects
    cache.remove(PODS, thing("unlabelled", 5))
    world.put(PODS, thing("unlabelled", 5))
    for _ in range(audit.DEAF_LIMIT):
        await made._compare(PODS)
    assert (told, made.deaf()) == ([], [])


async def test_what_came_back_after_it_was_gone_is_told(world_of_objects: Parts) -> None:
    world, cache, told, made = world_of_objects
    cache.remove(PODS, thing("relabelled", 5))
    world.put(PODS, thing("relabelled", 6))
    await made._compare(PODS)
    assert told == [(PODS, "relabelled")]


async def test_a_list_that_kopf_repeats_brings_the_audit_forward(world_of_objects: Parts) -> None:
    _, cache, told, made = world_of_objects
    cache.put(PODS, thing("gone", 5))
    made.relisted(PODS)
    assert not made._hurry.is_set()
    made.relisted(PODS)
    task = asyncio.create_task(made.run())
    async with asyncio.timeout(5):
        assert await told.get() == (PODS, "gone")
    task.cancel()


async def test_an_api_server_that_is_away_makes_no_watch_deaf(world_of_objects: Parts) -> None:
    world, cache, told, made = world_of_objects
    cache.put(PODS, thing("x", 1))
    world.failures = 1000
    with pytest.raises(UnavailableError):
        await made._compare(PODS)
    assert told == []
    assert made.deaf() == []
