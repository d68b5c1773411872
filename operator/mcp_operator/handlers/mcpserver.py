"""The reconcile of one MCPServer: observe, decide, act, write the status once and only when it differs."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from mcp_operator.adapters.errors import KeysRefusedError, NotFoundError
from mcp_operator.adapters.kinds import SERVERS
from mcp_operator.adapters.kube import Kube
from mcp_operator.adapters.relay import Endpoint
from mcp_operator.core import keys, status, times
from mcp_operator.core.api import Phase
from mcp_operator.core.decide import decide
from mcp_operator.core.naming import Key
from mcp_operator.core.observation import PodFacts
from mcp_operator.core.plan import Plan
from mcp_operator.core.transitions import notes
from mcp_operator.handlers.cache import Cache, uid_of
from mcp_operator.handlers.events import Herald
from mcp_operator.handlers.keysets import KeySets
from mcp_operator.handlers.observer import Observer, Scene
from mcp_operator.handlers.relays import RelayWatches
from mcp_operator.handlers.steps import Executor, Outcome
from mcp_operator.manifests import names, server
from mcp_operator.metrics import Metrics, Standing
from mcp_operator.settings import Settings
from mcp_relay_api import paths

logger = logging.getLogger(__name__)
Json = dict[str, Any]
KEYS_AGAIN = timedelta(seconds=2)
KEYS_REFUSED_AGAIN = timedelta(seconds=30)


class Reconciler:
    """Brings the world and the status of an MCPServer in line with its spec."""

    def __init__(
        self,
        *,
        kube: Kube,
        cache: Cache,
        observer: Observer,
        executor: Executor,
        relays: RelayWatches,
        metrics: Metrics,
        settings: Settings,
        clock: Callable[[], datetime],
        key_sets: KeySets,
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._observer = observer
        self._executor = executor
        self._relays = relays
        self._metrics = metrics
        self._settings = settings
        self._clock = clock
        self._key_sets = key_sets
        self._uids: dict[Key, str] = {}
        self._herald = Herald(kube)
        self._plans: dict[Key, str] = {}
        # When the last change was written that could have waited.
        self._written: dict[Key, datetime] = {}

    async def __call__(self, key: Key) -> float | None:
        """Reconcile one MCPServer; returns after how many seconds it wants to be called again."""
        found = self._cache.get(SERVERS, key)
        if found is None:
            self._forget(key)
            return None
        if self._uids.get(key, uid_of(found)) != uid_of(found):
            self._forget(key)  # that one is gone; this is another of the same name
        self._uids[key] = uid_of(found)
        with self._metrics.reconcile_seconds.time():
            scene = await self._observer.look(key, found)
            plan = decide(scene.seen)
            self._log(key, plan)
            outcome = await self._executor.execute(scene, plan)
            self._metrics.did(outcome.plan)
            self._follow(key, scene)
            later = await self._report(key, scene, outcome)
        return self._delay(outcome.plan.look_again, later, await self._bring_keys(key, scene))

    async def _bring_keys(self, key: Key, scene: Scene) -> datetime | None:
        """Give the relay the issuer's keys if it has others; returns when to try again."""
        document = self._key_sets.document(key)
        if document is None or not keys.outdated(scene.seen):
            return None
        try:
            taken = await self._relays.bring_keys(key, document)
        except KeysRefusedError as error:
            self._key_sets.brought(key, document, str(error))
            return self._clock() + KEYS_REFUSED_AGAIN
        if not taken:
            return self._clock() + KEYS_AGAIN
        self._key_sets.brought(key, document, "")
        return None

    def _forget(self, key: Key) -> None:
        self._relays.leave(key)
        self._observer.forget(key, self._uids.pop(key, ""))
        self._herald.forget(key)
        self._plans.pop(key, None)
        self._written.pop(key, None)

    def _log(self, key: Key, plan: Plan) -> None:
        told = str(replace(plan, look_again=None))
        if self._plans.get(key) != told:
            self._plans[key] = told
            logger.info("%s/%s: %s", *key, plan)

    def _follow(self, key: Key, scene: Scene) -> None:
        """Watch the relay of the newest pod, once it has an address and until it ends."""
        pod = scene.seen.pod
        token = scene.children.values.get(paths.ADMIN_TOKEN_FILE)
        if pod is None or not pod.ip or not token or not _worth_asking(pod):
            self._relays.leave(key, but=pod.uid if pod is not None and not pod.deleting else None)
            return
        endpoint = Endpoint(pod.ip, token.decode())
        self._relays.follow(key, pod.uid, endpoint, answered_before=scene.seen.served_before)

    async def _report(self, key: Key, scene: Scene, outcome: Outcome) -> datetime | None:
        """Write the status; returns when to write what was left for later."""
        seen, plan = scene.seen, outcome.plan
        if plan.hold:
            return None
        await self._herald.look(scene.owner, plan.phase, self._clock())
        context = status.Context(
            image=server.image(seen.spec, self._settings), url=names.url(seen.name, seen.namespace)
        )
        after = status.compute(seen, plan, context, outcome.created)
        change = status.patch(scene.server.get("status") or {}, status.document(after))
        if not change:
            return None
        now = self._clock()
        if status.minor(change):
            due = status.minor_due(self._written.get(key), now)
            if due is not None:
                return due
            self._written[key] = now
        try:
            answer = await self._kube.patch_status(SERVERS, *key, scene.owner.uid, change)
        except NotFoundError:
            return None
        self._metrics.status_writes.inc()
        self._cache.put(SERVERS, answer)
        if after.error is not None and status.counted(seen.status, after):
            self._metrics.failed(after.error)
        created = outcome.created[0] if outcome.created else ""
        if plan.phase is not Phase.TERMINATING:
            await self._herald.tell(scene.owner, notes(seen.status, after, plan, created), now)
        return None

    def _delay(self, *moments: datetime | None) -> float | None:
        known = [moment for moment in moments if moment is not None]
        return (min(known) - self._clock()).total_seconds() if known else None

    def standings(self) -> Iterable[Standing]:
        """How each MCPServer stands, for the metrics."""
        for _, found in self._cache.items(SERVERS):
            told = found.get("status") or {}
            following = (told.get("recovery") or {}).get("nextAttemptTime")
            yield Standing(told.get("phase", ""), times.parse(following))


def _worth_asking(pod: PodFacts) -> bool:
    return not (pod.deleting or pod.ended or pod.server.terminated)
