"""Who is woken by which event."""

from typing import Any, cast

import kopf
import pytest

from mcp_operator.adapters.kinds import CONFIG_MAPS, PODS, SECRETS, SERVERS, SERVICES, WATCHED, Kind
from mcp_operator.handlers import watching
from mcp_operator.handlers.cache import Cache
from mcp_operator.handlers.observer import Observer
from mcp_operator.main import kopf_settings
from mcp_operator.metrics import Metrics

Json = dict[str, Any]
OWNER = ("default", "time")


class Referring:
    """Only `time` refers to anything, and only to objects named `used`."""

    def referring(self, kind: Kind, key: tuple[str, str]) -> set[tuple[str, str]]:
        return {OWNER} if key == ("default", "used") else set()


class Setup:
    def __init__(self) -> None:
        self.woken: list[tuple[str, str]] = []
        self.relisted: list[Kind] = []
        self.watcher = watching.Watcher(
            Cache(), cast("Observer", Referring()), self.woken.append, self.relisted.append, Metrics()
        )


@pytest.fixture
def setup() -> Setup:
    return Setup()


def thing(name: str, version: int, owner: str = "") -> Json:
    references = [
        {"apiVersion": "mcp-session.dev/v1alpha1", "kind": "MCPServer", "name": owner, "controller": True}
    ]
    meta = {"namespace": "default", "name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": {**meta, **({"ownerReferences": references} if owner else {})}}


def test_a_resource_wakes_itself(setup: Setup) -> None:
    setup.watcher.take(SERVERS, "ADDED", thing("time", 1))
    assert setup.woken == [OWNER]


@pytest.mark.parametrize("kind", [PODS, SERVICES, SECRETS], ids=lambda kind: kind.plural)
def test_a_child_wakes_its_owner_when_it_changes_and_when_it_goes(setup: Setup, kind: Kind) -> None:
    setup.watcher.take(kind, "ADDED", thing("mcp-time", 1, owner="time"))
    setup.watcher.take(kind, "DELETED", thing("mcp-time", 2, owner="time"))
    assert setup.woken == [OWNER, OWNER]


@pytest.mark.parametrize("kind", [SECRETS, CONFIG_MAPS], ids=lambda kind: kind.plural)
def test_what_is_referred_to_wakes_who_refers_to_it(setup: Setup, kind: Kind) -> None:
    setup.watcher.take(kind, "MODIFIED", thing("used", 1))
    setup.watcher.take(kind, "MODIFIED", thing("unused", 2))
    assert setup.woken == [OWNER]


def test_what_is_known_already_wakes_nobody(setup: Setup) -> None:
    for event in ("ADDED", "MODIFIED", None):
        setup.watcher.take(SERVERS, event, thing("time", 1))
    assert setup.woken == [OWNER]


def test_a_list_is_reported_to_the_audit(setup: Setup) -> None:
    setup.watcher.take(PODS, None, thing("x", 1))
    assert setup.relisted == [PODS]


def test_kopf_watches_every_kind_and_puts_nothing_on_objects() -> None:
    registry = kopf.OperatorRegistry()
    watching.register(registry, Setup().watcher)
    watched = {handler.id for handler in registry._watching.get_all_handlers()}
    assert watched == {f"watch-{kind.plural}" for kind in WATCHED}
    assert not registry._changing.get_all_handlers()
    assert not registry._spawning.get_all_handlers()


def test_kopf_renews_silent_watches_and_needs_no_rights_beyond_ours() -> None:
    found = kopf_settings()
    assert found.watching.inactivity_timeout <= 60
    assert found.watching.server_timeout is not None
    assert found.scanning.disabled
    assert found.peering.standalone
    assert not found.posting.enabled
    assert found.watching.chunk_size
    assert found.queueing.idle_timeout < 1
    delays = iter(found.networking.error_backoffs)  # type: ignore[arg-type]  # ours is an endless iterable
    assert max(next(delays) for _ in range(1000)) <= 2
