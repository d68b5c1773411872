"""Puts the operator together and runs it: caches first, then kopf's watches; no logic of its own."""

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import kopf

from mcp_operator.adapters import kube as kube_adapter
from mcp_operator.adapters.errors import KubeError
from mcp_operator.adapters.issuers import Issuers
from mcp_operator.adapters.kinds import SERVERS, WATCHED, Kind
from mcp_operator.adapters.kube import Access, Kube
from mcp_operator.adapters.registry import Registries
from mcp_operator.core.naming import Key
from mcp_operator.handlers import health, pages, tasks, watching
from mcp_operator.handlers.audit import Audit
from mcp_operator.handlers.cache import Cache
from mcp_operator.handlers.children import Nursery
from mcp_operator.handlers.doors import Doors
from mcp_operator.handlers.entrypoints import EntryPoints
from mcp_operator.handlers.keysets import KeySets
from mcp_operator.handlers.mcpserver import Reconciler
from mcp_operator.handlers.observer import Observer
from mcp_operator.handlers.pages import Page
from mcp_operator.handlers.relays import RelayWatches
from mcp_operator.handlers.steps import Executor
from mcp_operator.handlers.workqueue import WorkQueue
from mcp_operator.metrics import CONTENT_TYPE, METRICS_PATH, Metrics
from mcp_operator.settings import Settings

logger = logging.getLogger(__name__)

CRD_SECONDS = 2.0
NO_CRD = f"the CRD {SERVERS.plural}.{SERVERS.group} is not installed: install it, it is waited for"
# The server ends each watch after this time, with a bookmark; a watch that is silent for longer is dead.
WATCH_SECONDS = 30
SILENCE_SECONDS = 40.0
# Kopf keeps each object that it has told of until the object's worker has had nothing to do for so long;
# after the first list these are all objects that there are.
IDLE_SECONDS = 0.1
CONNECT_SECONDS = 5.0
EXIT_SECONDS = 10.0
_KOPF = Path(kopf.__file__).parent


class Operator:
    """All parts of one operator, wired."""

    def __init__(self, kube: Kube, settings: Settings) -> None:
        """Raises OSError if the file with certificate authorities cannot be read."""
        self.settings = settings
        self.kube = kube
        self.metrics = Metrics()
        self.cache = Cache()
        self.queue = WorkQueue(self._reconcile, settings.concurrency, self._failed)
        self.relays = RelayWatches(self.queue.wake, settings.poll_wait, settings.poll_spacing)
        nursery = Nursery(kube, self.cache, settings)
        self.doors = Doors(self.queue.wake)
        self.registries = Registries(settings.insecure_registries, settings.registry_ca)
        self.entries = EntryPoints(kube, self.registries, self.queue.wake, _now)
        self.issuers = Issuers(settings.issuer_ca)
        self.key_sets = KeySets(kube, self.issuers, self.queue.wake)
        observer = Observer(
            kube,
            self.cache,
            nursery,
            self.relays.view,
            settings,
            _now,
            self.doors,
            self.entries,
            self.key_sets,
        )
        self.reconciler = Reconciler(
            kube=kube,
            cache=self.cache,
            observer=observer,
            executor=Executor(kube, self.cache, nursery, self.relays.reconnect, self.entries.ask),
            relays=self.relays,
            metrics=self.metrics,
            settings=settings,
            clock=_now,
            key_sets=self.key_sets,
        )
        self.audit = Audit(kube, self.cache, settings.namespaces, self._tell, settings.audit_interval)
        self.watcher = watching.Watcher(
            self.cache, observer, self.queue.wake, self.audit.relisted, self.metrics
        )
        self.metrics.show(self.reconciler.standings, _now)
        self._prepared = False
        self._obstacle = ""

    def waiting(self) -> str:
        """What keeps the operator from serving; "" once it does."""
        return "" if self._prepared else self._obstacle or self.audit.obstacle or "the cluster is being read"

    def trouble(self) -> str:
        """Why the process should be restarted; "" while all is well."""
        deaf = self.audit.deaf()
        if deaf:
            return f"the watches of {', '.join(deaf)} are deaf"
        seconds = self.queue.oldest()
        return f"a reconcile hangs for {seconds:.0f} s" if seconds > health.STUCK_SECONDS else ""

    async def prepare(self) -> None:
        """Wait for the CRD, then learn what there is and look at each resource once."""
        await self._crd()
        await self.audit.prime()
        for key, _ in self.cache.items(SERVERS):
            self.queue.wake(key)
        self._prepared = True

    def pages(self) -> Mapping[str, Callable[[], Page]]:
        """What is served at the metrics' port."""
        return {METRICS_PATH: lambda: Page("200 OK", self.metrics.text(), CONTENT_TYPE)}

    async def close(self) -> None:
        """End all runs and polls."""
        await self.queue.close()
        await self.relays.close()
        await self.doors.close()
        await self.entries.close()
        await self.registries.close()
        await self.key_sets.close()
        await self.issuers.close()

    async def _crd(self) -> None:
        while True:
            try:
                self._obstacle = "" if await self.kube.served(SERVERS) else NO_CRD
            except KubeError as error:
                self._obstacle = f"the API server does not answer: {error}"
            if not self._obstacle:
                return
            logger.warning("not ready: %s", self._obstacle)
            await asyncio.sleep(CRD_SECONDS)

    async def _reconcile(self, key: Key) -> float | None:
        return await self.reconciler(key)

    def _failed(self, key: Key, error: Exception, delay: float) -> None:
        self.metrics.reconcile_errors.labels(type(error).__name__).inc()
        known = isinstance(error, KubeError)
        logger.warning(
            "%s/%s: tried again in %.1f s: %s", *key, delay, error, exc_info=None if known else error
        )

    def _tell(self, kind: Kind, found: dict[str, Any]) -> None:
        self.watcher.tell(kind, found)


class _Backoffs:
    """Delays between kopf's requests that fail: short, capped, without end."""

    def __iter__(self) -> Iterator[float]:
        yield 0.2
        while True:
            yield 0.5


def kopf_settings() -> kopf.OperatorSettings:
    """How kopf watches: no Events, no peering, no look at CRDs and namespaces; silent watches are renewed."""
    found = kopf.OperatorSettings()
    found.posting.enabled = False
    found.peering.standalone = True
    found.scanning.disabled = True
    found.watching.server_timeout = WATCH_SECONDS
    found.watching.inactivity_timeout = SILENCE_SECONDS
    found.watching.connect_timeout = CONNECT_SECONDS
    found.watching.chunk_size = kube_adapter.PAGE
    found.queueing.idle_timeout = IDLE_SECONDS
    found.networking.error_backoffs = _Backoffs()
    found.process.ultimate_exiting_timeout = EXIT_SECONDS
    for kind in WATCHED:
        if kind.selector:
            found.watching.label_selectors[kind.group, kind.version, kind.plural] = kind.selector
        if kind.fields:
            found.watching.field_selectors[kind.group, kind.version, kind.plural] = kind.fields
    return found


def _connection(access: Access) -> kopf.ConnectionInfo:
    scheme, _, token = access.authorization.partition(" ")
    return kopf.ConnectionInfo(
        server=access.server,
        ca_path=access.ca_path or None,
        insecure=access.insecure,
        scheme=scheme or None,
        token=token or None,
        certificate_path=access.certificate_path or None,
        private_key_path=access.key_path or None,
    )


def registry(operator: Operator) -> kopf.OperatorRegistry:
    """The handlers of an operator."""
    found = kopf.OperatorRegistry()

    async def login(**_: Any) -> kopf.ConnectionInfo:
        return _connection(await operator.kube.access())

    async def cleanup(**_: Any) -> None:
        await operator.close()

    kopf.on.login(registry=found, id="login")(login)
    # kopf would wait for our runs and polls to end by themselves.
    kopf.on.cleanup(registry=found, id="close")(cleanup)
    watching.register(found, operator.watcher)
    return found


async def run(settings: Settings) -> None:
    """Run until a signal or an error ends it."""
    _end_by_signal()
    asyncio.get_running_loop().set_exception_handler(told)
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(kube_adapter.connected())
        operator = Operator(kube, settings)
        stack.push_async_callback(operator.close)
        probes = health.pages(operator.trouble, operator.waiting)
        await stack.enter_async_context(pages.served(settings.health_port, probes))
        await stack.enter_async_context(pages.served(settings.metrics_port, operator.pages()))
        await operator.prepare()
        watches = kopf.operator(
            registry=registry(operator),
            settings=kopf_settings(),
            clusterwide=not settings.namespaces,
            namespaces=settings.namespaces,
        )
        # Without the audit nobody would notice deaf watches: then rather a new process.
        await tasks.together(watches, operator.audit.run())


def told(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What nobody awaited and failed is logged, but for what kopf's watches say when the loop ends.

    kopf cancels a watch and leaves its generators to the collector: their closing races with the end of
    the loop, and the one that loses says `generator didn't stop after athrow()`. Nothing is open then.
    """
    generator = context.get("asyncgen")
    if generator is not None and _KOPF in Path(generator.ag_code.co_filename).parents:
        logger.debug("a watch was closed twice: %s", context.get("exception"))
        return
    loop.default_exception_handler(context)


def _end_by_signal() -> None:
    """Until kopf looks after signals itself: the first process of a container would not hear them at all."""
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def _now() -> datetime:
    return datetime.now(UTC)
