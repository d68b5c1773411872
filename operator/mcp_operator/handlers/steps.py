"""Executes a plan in numbered steps. Each can be repeated: what fails is tried again with fresh facts."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mcp_operator.adapters.errors import ConflictError, RefusedChildError, RefusedError
from mcp_operator.adapters.kinds import PODS
from mcp_operator.adapters.kube import Kube
from mcp_operator.core import limits
from mcp_operator.core.api import MCPServerSpec
from mcp_operator.core.naming import Key
from mcp_operator.core.observation import PodFacts
from mcp_operator.core.plan import Plan
from mcp_operator.core.refusal import TAKEN, Refusal, refused, withheld
from mcp_operator.handlers.cache import Cache, uid_of
from mcp_operator.handlers.children import Nursery
from mcp_operator.handlers.observer import Scene
from mcp_operator.manifests import identity
from mcp_operator.manifests import pod as pod_manifest

logger = logging.getLogger(__name__)
Json = dict[str, Any]
# For a pod whose server has ended: the relay needs no more than to tell its clients.
DEAD_GRACE_SECONDS = 1
FOREIGN = 'the pod "{name}" exists and belongs to someone else: delete it or rename the MCPServer'


@dataclass(frozen=True)
class Outcome:
    """What came of a plan: the plan (another one if something was refused), and the pod that was made."""

    plan: Plan
    created: tuple[str, str] | None = None


class Executor:
    """Does what plans say."""

    def __init__(
        self,
        kube: Kube,
        cache: Cache,
        nursery: Nursery,
        reconnect: Callable[[Key], Awaitable[None]],
        look_up: Callable[[Key, MCPServerSpec], None],
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._nursery = nursery
        self._reconnect = reconnect
        self._look_up = look_up

    async def execute(self, scene: Scene, plan: Plan) -> Outcome:
        """Delete pods; write the fence; write the other children and create the pod; reconnect; look up."""
        undeleted = await asyncio.gather(
            *(self._delete(scene, pod) for pod in plan.delete), return_exceptions=True
        )
        refusal = _refused(undeleted)
        if refusal is not None:
            return Outcome(withheld(scene.seen, replace(plan, create_epoch=None), refusal))
        refusal = await self._fence(scene, plan)
        if refusal is not None:
            answer = withheld if plan.create_epoch is None else refused
            return Outcome(answer(scene.seen, plan, refusal))
        wanted = plan.wanted and bool(scene.children.apply)
        results = await asyncio.gather(
            self._nursery.apply(scene.owner, scene.children) if wanted else _nothing(),
            self._create(scene, plan),
            return_exceptions=True,
        )
        refusal, made = _refused(results), results[1]
        outcome = made if isinstance(made, Outcome) else Outcome(plan)
        if refusal is not None and outcome.plan is plan:
            outcome = replace(outcome, plan=withheld(scene.seen, plan, refusal))
        key = (scene.owner.namespace, scene.owner.name)
        if plan.reconnect:
            await self._reconnect(key)
        if plan.look_up:
            self._look_up(key, scene.seen.spec)
        return outcome

    async def _fence(self, scene: Scene, plan: Plan) -> Refusal | None:
        if not plan.wanted:
            return None
        return _refused(await asyncio.gather(self._nursery.protect(scene.children), return_exceptions=True))

    async def _delete(self, scene: Scene, pod: PodFacts) -> None:
        if pod.deleting:
            return
        grace = DEAD_GRACE_SECONDS if pod.server.terminated or pod.ended else None
        try:
            answer = await self._kube.delete(PODS, scene.owner.namespace, pod.name, pod.uid, grace)
        except RefusedError as error:
            raise RefusedChildError(f'to delete the pod "{pod.name}"', error) from error
        if answer is not None and uid_of(answer) == pod.uid:
            self._cache.put(PODS, answer)

    async def _create(self, scene: Scene, plan: Plan) -> Outcome | None:
        if plan.create_epoch is None:
            return None
        seen = scene.seen
        entry = seen.entry.command if seen.entry is not None else None
        body = pod_manifest.build(
            scene.template, scene.owner, plan.create_epoch, seen.config_hash, seen.config, entry
        )
        name = body["metadata"]["name"]
        try:
            answer = await self._kube.create(PODS, body)
        except RefusedError as error:
            cure = limits.cure(error.message, pod_manifest.resources(body))
            return Outcome(refused(seen, plan, replace(_refusal(error), cure=cure)))
        except ConflictError:
            found = await self._kube.read(PODS, scene.owner.namespace, name)
            if found is None:
                raise  # it has gone meanwhile; the next run takes the name
            if not identity.owned(found, scene.owner):
                return Outcome(refused(scene.seen, plan, Refusal(TAKEN, FOREIGN.format(name=name))))
            answer = found  # our own, of a run whose answer was lost
        self._cache.put(PODS, answer)
        return Outcome(plan, (name, uid_of(answer)))


def _refusal(error: RefusedError) -> Refusal:
    return Refusal(error.status, error.message, error.cause)


def _refused(results: Sequence[object]) -> Refusal | None:
    """The first refusal among the results of several requests. Any other error among them is raised."""
    found = None
    for result in results:
        if isinstance(result, RefusedChildError):
            found = found or replace(_refusal(result.error), what=result.what)
        elif isinstance(result, BaseException):
            raise result
    return found


async def _nothing() -> None:
    return None
