"""A server whose spec leaves the command to its image: what is asked, when, and what follows."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from mcp_operator.adapters.errors import RegistryError, UnavailableError
from mcp_operator.adapters.kinds import PODS, SECRETS
from mcp_operator.adapters.kube import Kube
from mcp_operator.adapters.registry import Registries
from mcp_operator.core.api import Phase
from mcp_operator.core.decide import decide
from mcp_operator.core.observation import EntryPointView
from mcp_operator.core.oci.credentials import Credentials
from mcp_operator.core.oci.image import EntryPoint
from mcp_operator.core.oci.reference import Reference
from mcp_operator.handlers.entrypoints import FRESH, EntryPoints

KEY = ("default", "time")
IMAGE = "ghcr.io/org/server:1"


class FakeRegistries:
    """Answers what the test says; remembers what it was asked."""

    def __init__(self) -> None:
        self.answer: EntryPoint | Exception = EntryPoint(("server",), ("--fast",))
        self.asked: list[tuple[Reference, tuple[Credentials, ...]]] = []

    async def entry_point(self, image: Reference, credentials: Sequence[Credentials]) -> EntryPoint:
        self.asked.append((image, tuple(credentials)))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Bench:
    """The entry points of one server, with a clock of the test's."""

    def __init__(self, setup: Any) -> None:
        self.kube = setup.kube
        self.registries = FakeRegistries()
        self.now: datetime = setup.now
        self.woken = asyncio.Event()
        self.points = EntryPoints(
            cast("Kube", self.kube),
            cast("Registries", self.registries),
            lambda key: self.woken.set(),
            lambda: self.now,
        )

    async def asked(self, spec: Any) -> EntryPointView:
        self.woken.clear()
        self.points.ask(KEY, spec)
        seen = self.points.view(KEY, spec)
        assert seen is not None
        assert seen.asked
        await asyncio.wait_for(self.woken.wait(), 5)
        found = self.points.view(KEY, spec)
        assert found is not None
        return found


@pytest.fixture
def bench(setup: Any) -> Bench:
    return Bench(setup)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda w: {"pods": (), "entry": EntryPointView()},
            "no-pod: Wait -> Pending (PodMissing): look up the image",
        ),
        (
            lambda w: {"pods": (), "entry": EntryPointView(asked=True)},
            "no-pod: Wait -> Pending (PodMissing)",
        ),
        (
            lambda w: {"pods": (), "entry": EntryPointView(problem="no", again=w.later(5))},
            "no-pod: GiveUp -> Error (EntryPointUnknown) again=12:00:05",
        ),
        (
            lambda w: {"pods": (), "entry": EntryPointView(problem="no", passing=True, again=w.ago(0))},
            "no-pod: Wait -> Pending (EntryPointUnknown): look up the image",
        ),
        (
            lambda w: {"pods": (), "entry": EntryPointView(("server",))},
            "no-pod: Create -> Pending (Created): create epoch 2",
        ),
        (
            lambda w: {"config_hash": "other.refs", "entry": EntryPointView()},
            "outdated: Wait -> Pending (PodMissing): look up the image",
        ),
        (lambda w: {"entry": EntryPointView()}, "connected: None -> Connected (Connected)"),
    ],
)
def test_no_pod_is_made_and_none_is_taken_away_until_the_entry_point_is_known(
    world: Any, change: Any, expected: str
) -> None:
    plan = decide(world.seen(**change(world)))
    assert str(plan).replace(f" again={world.later(540):%H:%M:%S}", "") == expected
    assert plan.budget.failures == 0


def test_the_next_attempt_stays_due_while_the_registry_is_asked(world: Any) -> None:
    status = world.status(consecutive_failures=1, failed_epoch=1, next_attempt_time=world.ago(1))
    failed = world.pod(phase="Failed", server=world.terminated(1))
    plan = decide(world.seen(status=status, pods=(failed,), entry=EntryPointView()))
    assert plan.look_up
    assert plan.budget.next_attempt == world.ago(1)
    assert decide(world.seen(status=status, pods=(failed,), entry=EntryPointView(("a",)))).create_epoch == 2


async def test_a_spec_with_a_command_asks_nobody(bench: Bench, world: Any) -> None:
    assert bench.points.view(KEY, world.spec()) is None
    assert bench.registries.asked == []


async def test_an_answer_is_used_until_it_is_old(bench: Bench, world: Any) -> None:
    spec = world.spec(command=[], image=IMAGE)
    assert bench.points.view(KEY, spec) == EntryPointView()
    assert await bench.asked(spec) == EntryPointView(("server", "--fast"))
    bench.now += FRESH
    assert bench.points.view(KEY, spec) == EntryPointView()


async def test_a_registry_that_is_away_does_not_keep_a_known_image_from_starting(
    bench: Bench, world: Any
) -> None:
    spec = world.spec(command=[], image=IMAGE, args=["x"])
    await bench.asked(spec)
    bench.now += FRESH
    bench.registries.answer = RegistryError("away", passing=True)
    assert await bench.asked(spec) == EntryPointView(("server",))


async def test_failures_are_asked_about_again_after_growing_times(bench: Bench, world: Any) -> None:
    spec = world.spec(command=[], image=IMAGE)
    bench.registries.answer = RegistryError("it refuses access", denied=True)
    waits = []
    for _ in range(8):
        seen = await bench.asked(spec)
        assert "spec.imagePullSecrets" in seen.problem
        assert seen.again is not None
        waits.append((seen.again - bench.now) / timedelta(seconds=1))
    assert waits == [5, 10, 20, 40, 80, 160, 300, 300]
    bench.registries.answer = EntryPoint(("server",), ())
    assert (await bench.asked(spec)).command == ("server",)


@pytest.mark.parametrize(
    ("answer", "image", "words", "passing"),
    [
        (EntryPoint((), ()), IMAGE, f"{IMAGE} has neither ENTRYPOINT nor CMD", False),
        (RegistryError("ghcr.io does not answer", passing=True), IMAGE, "does not answer", True),
        (UnavailableError("x"), IMAGE, "pull Secret cannot be read", True),
        (EntryPoint(("a",), ()), "No Image", "spec.image: 'No Image' is not the name", False),
        (ValueError("a defect"), IMAGE, "a defect of the operator", True),
    ],
)
async def test_what_hinders_is_told(
    bench: Bench, world: Any, answer: Any, image: str, words: str, passing: bool
) -> None:
    bench.registries.answer = answer
    seen = await bench.asked(world.spec(command=[], image=image))
    assert words in seen.problem
    assert seen.passing == passing


async def test_another_image_or_another_pull_secret_is_another_question(bench: Bench, world: Any) -> None:
    bench.kube.objects[SECRETS]["pull"] = {
        "metadata": {"name": "pull"},
        "data": {
            ".dockerconfigjson": "eyJhdXRocyI6eyJnaGNyLmlvIjp7InVzZXJuYW1lIjoidSIsInBhc3N3b3JkIjoicCJ9fX0="
        },
    }
    await bench.asked(world.spec(command=[], image=IMAGE))
    with_secret = world.spec(command=[], image=IMAGE, imagePullSecrets=[{"name": "pull"}, {"name": "absent"}])
    assert bench.points.view(KEY, with_secret) == EntryPointView()
    await bench.asked(with_secret)
    assert [given for _, given in bench.registries.asked] == [(), (Credentials("u", "p"),)]


async def test_a_server_that_goes_takes_its_question_along(bench: Bench, world: Any) -> None:
    bench.points.ask(KEY, world.spec(command=[], image=IMAGE))
    bench.points.forget(KEY)
    await bench.points.close()
    assert bench.registries.asked == []


async def test_the_pod_runs_what_the_image_starts(setup: Any) -> None:
    registries = FakeRegistries()
    registries.answer = EntryPoint(("server", "$(HOME)"), ("--fast",))
    woken = asyncio.Event()
    setup.entries._registries = registries
    setup.entries._wake = lambda key: woken.set()
    setup.server(command=[], image=IMAGE)
    await setup.reconcile(KEY)
    assert setup.status()["phase"] == Phase.PENDING
    assert setup.names(PODS) == []
    await asyncio.wait_for(woken.wait(), 5)
    await setup.reconcile(KEY)
    (name,) = setup.names(PODS)
    (container,) = setup.kube.objects[PODS][name]["spec"]["containers"]
    # Words of an image are literal; the kubelet would replace `$(HOME)` in those of a pod.
    assert container["command"][-3:] == ["server", "$$(HOME)", "--fast"]
    assert replace(registries.asked[0][0], version="") == Reference("ghcr.io", "org/server", "")
