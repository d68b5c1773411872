"""Fetches the keys of token issuers and keeps them; servers with the same issuer share one set.

A relay may have no way to an issuer, so the operator asks, and hands on what it gets (see `Reconciler`).
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from mcp_operator.adapters.errors import IssuerError, KubeError
from mcp_operator.adapters.issuers import Issuers
from mcp_operator.adapters.kube import Kube
from mcp_operator.core import keys
from mcp_operator.core.api.spec import Jwt
from mcp_operator.core.keys import KeySet, KeySetError
from mcp_operator.core.naming import Key
from mcp_operator.core.observation import KeysView
from mcp_operator.handlers import tasks
from mcp_relay_api.status import RelayStatus

logger = logging.getLogger(__name__)
REFRESH_SECONDS: Final = 300.0
# It takes no right to name a key that nobody has: an issuer is asked no more often for that.
COOLDOWN_SECONDS: Final = 30.0
FIRST_SECONDS: Final = 5.0
# The API server's own, as every issuer of tokens has them.
_CLUSTER_KEYS: Final = "/openid/v1/jwks"


@dataclass(eq=False)
class _Source:
    """One issuer, with the place of its keys if the spec names it."""

    issuer: str
    jwks_uri: str | None
    users: set[Key] = field(default_factory=set)
    found: KeySet | None = None
    problem: str = ""
    failures: int = 0
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def field(self) -> str:
        if self.jwks_uri is not None:
            return f"spec.auth.jwt.jwksURI: {self.jwks_uri}"
        return f"spec.auth.jwt.issuer: {self.issuer}"


class KeySets:
    """The keys for each server whose clients have tokens of an issuer."""

    def __init__(
        self,
        kube: Kube,
        issuers: Issuers,
        wake: Callable[[Key], None],
        refresh: float = REFRESH_SECONDS,
        cooldown: float = COOLDOWN_SECONDS,
    ) -> None:
        self._kube = kube
        self._issuers = issuers
        self._wake = wake
        self._refresh = refresh
        self._cooldown = cooldown
        self._sources: dict[tuple[str, str | None], _Source] = {}
        self._by_key: dict[Key, _Source] = {}
        # What the relay of a server said last of tokens with unknown keys: its instance, and how many.
        self._unknown: dict[Key, tuple[str, int]] = {}

    def view(self, key: Key, jwt: Jwt | None, told: RelayStatus | None) -> KeysView | None:
        """What is known now; begins to ask for what is not. None: no issuer is named."""
        if jwt is None:
            self.forget(key)
            return None
        source = self._source(key, jwt)
        if self._missed(key, told):
            source.asked.set()
        return KeysView(source.found.digest if source.found else None, source.problem)

    def document(self, key: Key) -> bytes | None:
        """The set that the relay of this server is to have."""
        source = self._by_key.get(key)
        return source.found.document if source is not None and source.found is not None else None

    def forget(self, key: Key) -> None:
        """The server has no issuer any more; what nobody uses is not followed."""
        self._unknown.pop(key, None)
        source = self._by_key.pop(key, None)
        if source is None:
            return
        source.users.discard(key)
        if not source.users:
            self._drop(source)

    async def close(self) -> None:
        """End all. Idempotent."""
        running = [source.task for source in self._sources.values() if source.task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._sources.clear()
        self._by_key.clear()

    def _source(self, key: Key, jwt: Jwt) -> _Source:
        place = (jwt.issuer, jwt.jwks_uri)
        known = self._by_key.get(key)
        if known is not None and (known.issuer, known.jwks_uri) == place:
            return known
        self.forget(key)
        source = self._sources.get(place)
        if source is None:
            source = self._sources[place] = _Source(*place)
            source.task = tasks.start(
                f"the keys of {jwt.issuer}", self._follow(source), lambda: self._died(source)
            )
        source.users.add(key)
        self._by_key[key] = source
        return source

    def _drop(self, source: _Source) -> None:
        self._sources.pop((source.issuer, source.jwks_uri), None)
        if source.task is not None:
            source.task.cancel()

    def _died(self, source: _Source) -> None:
        """A defect: the reconciles that follow begin anew, but not without pause."""
        self._drop(source)
        for key in source.users:
            self._by_key.pop(key, None)
            asyncio.get_running_loop().call_later(self._cooldown, self._wake, key)

    def _missed(self, key: Key, told: RelayStatus | None) -> bool:
        """Whether a token named a key that the relay does not have, since this was asked last."""
        if told is None or told.keys is None:
            return False
        now = (told.instance, told.keys.unknown)
        before = self._unknown.get(key)
        self._unknown[key] = now
        if before is None:
            return False
        return now[1] > (before[1] if before[0] == now[0] else 0)

    async def _follow(self, source: _Source) -> None:
        while True:
            before = (source.found, source.problem)
            await self._fetch(source)
            if before != (source.found, source.problem):
                for key in source.users:
                    self._wake(key)
            pause = self._refresh
            if source.problem:
                pause = min(FIRST_SECONDS * 2.0 ** min(source.failures - 1, 10), self._refresh)
            calm = min(self._cooldown, pause)
            await asyncio.sleep(calm)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(source.asked.wait(), pause - calm)
            source.asked.clear()

    async def _fetch(self, source: _Source) -> None:
        try:
            source.found, source.problem, source.failures = await self._keys(source), "", 0
        except (IssuerError, KeySetError, KubeError) as error:
            source.failures += 1
            rest = "; the keys that it sent before are used" if source.found is not None else ""
            source.problem = f"{source.field}: the keys cannot be fetched: {error}{rest}"

    async def _keys(self, source: _Source) -> KeySet:
        if source.jwks_uri is not None:
            return keys.key_set(await self._issuers.document(source.jwks_uri))
        if await self._is_cluster(source.issuer):
            return keys.key_set(await self._kube.document(_CLUSTER_KEYS))
        place = keys.location(await self._configuration(source.issuer), source.issuer)
        return keys.key_set(await self._issuers.document(place))

    async def _is_cluster(self, issuer: str) -> bool:
        """Whether it is the issuer of this cluster's service account tokens.

        That one is asked over the connection to the API server, which is the only one to get our own token.
        """
        try:
            told = await self._kube.document(keys.OPENID)
        except KubeError as error:
            logger.info("the cluster does not tell which tokens it issues: %s", error)
            return False
        return told.get("issuer") == issuer

    async def _configuration(self, issuer: str) -> dict[str, object]:
        first, second = keys.places(issuer)
        try:
            return await self._issuers.document(first)
        except IssuerError as error:
            if not error.absent:
                raise
        return await self._issuers.document(second)
