"""Compares the cache with the API server: fills it at the start, heals it now and then, finds deaf watches.

kopf does not tell which objects vanished while a watch was interrupted, nor that a watch has gone silent. So
everything is listed before the first decision; after that only names and versions, every minute or few and
after each interruption. What the watch should have told and did not, is told here.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from mcp_operator.adapters.errors import KubeError
from mcp_operator.adapters.kinds import PODS, SERVERS, WATCHED, Kind
from mcp_operator.adapters.kube import Kube
from mcp_operator.core.naming import Key
from mcp_operator.handlers.cache import Cache, key_of, uid_of, version_of

logger = logging.getLogger(__name__)
Json = dict[str, Any]

# How long a watch may lag behind a list, and how often it may be caught deaf before the process ends.
LAG_SECONDS: Final = 5.0
# kopf does not tell of a new list that is empty: what vanished then is found here.
OFTEN: Final = (SERVERS, PODS)
WHOLE_EVERY: Final = 5
DEAF_LIMIT: Final = 2
RETRY_SECONDS: Final = 2.0


class Audit:
    """One audit of all kinds in all served namespaces."""

    def __init__(
        self,
        kube: Kube,
        cache: Cache,
        namespaces: tuple[str, ...],
        tell: Callable[[Kind, Json], None],
        interval: float,
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._scopes: tuple[str | None, ...] = namespaces or (None,)
        self._tell = tell
        self._interval = interval
        self._deaf: dict[Kind, int] = {}
        self._hurry = asyncio.Event()
        self._primed: set[Kind] = set()
        self.obstacle = ""
        """Why the cache cannot be filled; "" while nothing hinders that."""

    async def prime(self) -> None:
        """Fill the cache. Tries until it succeeds: nothing may be decided without it."""
        for kind in WATCHED:
            while True:
                try:
                    await self._fill(kind)
                except KubeError as error:
                    self.obstacle = f"the {kind.plural} cannot be listed: {error}"
                    logger.warning("not ready: %s", self.obstacle)
                    await asyncio.sleep(RETRY_SECONDS)
                else:
                    self.obstacle = ""
                    break

    def relisted(self, kind: Kind) -> None:
        """Kopf has listed anew: something may have vanished meanwhile."""
        if kind in self._primed:
            self._hurry.set()
        self._primed.add(kind)

    def deaf(self) -> list[str]:
        """The kinds whose watch missed what it should have told, in each of the last audits."""
        return [kind.plural for kind, count in self._deaf.items() if count >= DEAF_LIMIT]

    async def run(self) -> None:
        """Audit for ever: servers and pods often, the rest every few rounds and after an interruption."""
        for number in itertools.count(1):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), self._interval)
            await asyncio.sleep(LAG_SECONDS)
            whole = self._hurry.is_set() or number % WHOLE_EVERY == 0
            self._hurry.clear()
            for kind in WATCHED if whole else OFTEN:
                try:
                    await self._compare(kind)
                except KubeError as error:
                    logger.info("the %s cannot be compared now: %s", kind.plural, error)

    async def _fill(self, kind: Kind) -> None:
        for scope in self._scopes:
            async for found in self._kube.listing(kind, scope):
                self._cache.put(kind, found)

    async def _compare(self, kind: Kind) -> None:
        suspects = await self._differences(kind)
        if not suspects:
            self._deaf[kind] = 0
            return
        await asyncio.sleep(LAG_SECONDS)
        still = [key for key in suspects if self._version(kind, key) == suspects[key]]
        missed = [key for key in still if await self._heal(kind, key)]
        self._deaf[kind] = self._deaf.get(kind, 0) + 1 if missed else 0
        if missed:
            logger.warning(
                "the watch of %s missed %d changes, for example %s", kind.plural, len(missed), missed[0]
            )

    async def _differences(self, kind: Kind) -> dict[Key, tuple[str, int]]:
        """What is known of each object of which the API server knows something newer, or nothing."""
        known = {key: (uid_of(found), version_of(found)) for key, found in self._cache.items(kind)}
        for scope in self._scopes:
            async for found in self._kube.listing(kind, scope, metadata_only=True):
                key = key_of(found)
                uid, version = known.get(key, ("", 0))
                if uid == uid_of(found) and version >= version_of(found):
                    known.pop(key, None)
                else:
                    known[key] = (uid, version)
        return {key: value for key, value in known.items() if value == self._version(kind, key)}

    def _version(self, kind: Kind, key: Key) -> tuple[str, int]:
        found = self._cache.get(kind, key)
        return ("", 0) if found is None else (uid_of(found), version_of(found))

    async def _heal(self, kind: Kind, key: Key) -> bool:
        """Whether there was something to tell."""
        healed = False
        known = self._cache.get(kind, key)
        found = await self._kube.read(kind, *key)
        if known is not None and (found is None or uid_of(found) != uid_of(known)):
            self._cache.remove(kind, known)
            self._tell(kind, known)
            healed = True
        if found is not None and self._cache.put(kind, found):
            self._tell(kind, found)
            healed = True
        return healed
