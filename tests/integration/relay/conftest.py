from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from relaykit.fakelauncher import FakeLauncher
from relaykit.pod import Pod, launcher_path
from relaykit.remote import Far, pod_for, target
from relaykit.unruly import MakeRelay, Unruly

MakePod = Callable[..., Awaitable[Pod]]


@pytest.fixture
async def make_pod(tmp_path: Path) -> AsyncIterator[MakePod]:
    """Makes a running pod: `await make_pod(mode, relay=..., **settings)`; stopped at the end of the test."""
    if not launcher_path().exists():
        pytest.fail("the launcher is missing: run `make launcher`")
    pods: list[Pod] = []

    async def make(
        mode: str = "answer", *, command: list[str] | None = None, relay: str = "inside", **settings: Any
    ) -> Pod:
        directory = tmp_path / f"pod{len(pods)}"
        directory.mkdir()
        pod = Pod(directory, **settings)
        pods.append(pod)
        pod.launch(mode, command=command)
        await (pod.relay() if relay == "inside" else pod.spawn_relay())
        return pod

    yield make
    for pod in pods:
        await pod.stop()


@pytest.fixture
async def pod(make_pod: MakePod) -> Pod:
    """A pod whose server answers, connected, its tools known."""
    made = await make_pod()
    await made.settled()
    return made


@pytest.fixture
async def bare_pod(tmp_path: Path) -> AsyncIterator[Pod]:
    """A relay whose launcher is `launcher`; not started yet."""
    made = Pod(tmp_path)
    yield made
    await made.stop()


@pytest.fixture
async def launcher(bare_pod: Pod) -> AsyncIterator[FakeLauncher]:
    fake = FakeLauncher(bare_pod.socket)
    await fake.start()
    yield fake
    await bare_pod.stop()
    await fake.stop()


@pytest.fixture
async def far() -> AsyncIterator[Far]:
    server = Far()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def near(tmp_path: Path, far: Far) -> AsyncIterator[MakePod]:
    """Makes a running relay: `await near(path="/mcp", settings…)`."""
    pods: list[Pod] = []

    async def make(
        path: str = "/mcp", *, where: dict[str, Any] | None = None, start: bool = True, **settings: Any
    ) -> Pod:
        pod = pod_for(tmp_path / f"pod{len(pods)}", target(far.base + path, **(where or {})), **settings)
        pods.append(pod)
        if start:
            await pod.relay()
        return pod

    yield make
    for pod in pods:
        await pod.stop()


@pytest.fixture
def unruly() -> Iterator[Unruly]:
    server = Unruly()
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def relay(tmp_path: Path, unruly: Unruly) -> AsyncIterator[MakeRelay]:
    """Makes a running relay in front of `unruly`: `await relay(path, where={…}, **settings)`."""
    pods: list[Pod] = []

    async def make(path: str = "/mcp", where: dict[str, Any] | None = None, **settings: Any) -> Pod:
        directory = tmp_path / f"pod{len(pods)}"
        pod = pod_for(directory, target(unruly.url(path), **(where or {})), **settings)
        pods.append(pod)
        await pod.relay()
        return pod

    yield make
    for pod in pods:
        await pod.stop()
