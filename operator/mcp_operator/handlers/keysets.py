"""Fetches the keys of token issuers and keeps them; servers with the same issuer share one set.

A relay may have no way to an issuer, so the operator asks, and hands on what it gets (see `Reconciler`).
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

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
    confirmed: float
    """When the issuer said last what its keys are, by the event loop's clock; at first when it was named."""
    users: set[Key] = field(default_factory=set)
    found: KeySet | None = None
    problem: str = ""
    failures: int = 0
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def field(self) -> str:
        return keys.named(self.issuer, self.jwks_uri)

    @property
    def mark(self) -> str:
        return keys.mark(self.issuer, self.jwks_uri)


class KeySets:
    """The keys for each server whose clients have tokens of an issuer."""

    def __init__(
        self,
        kube: Kube,
        issuers: Issuers,
        wake: Callable[[Key], None],
        refresh: float = REFRESH_SECONDS,
        cooldown: float = COOLDOWN_SECONDS,
        max_age: float = keys.MAX_AGE_SECONDS,
    ) -> None:
        self._kube = kube
        self._issuers = issuers
        self._wake = wake
        self._refresh = refresh
        self._cooldown = cooldown
        self._max_age = max_age
        self._sources: dict[tuple[str, str | None], _Source] = {}
        self._by_key: dict[Key, _Source] = {}
        # What the relay of a server said last of tokens with unknown keys: its instance, and how many.
        self._unknown: dict[Key, tuple[str, int]] = {}
        # Why the relay of a server did not take a set: the set, and its words.
        self._refusals: dict[Key, tuple[bytes, str]] = {}

    def view(self, key: Key, jwt: Jwt | None, told: RelayStatus | None) -> KeysView | None:
        """What is known now; begins to ask for what is not. None: no issuer is named."""
        if jwt is None:
            self.forget(key)
            return None
        source = self._source(key, jwt)
        if self._missed(key, told):
            source.asked.set()
        digest = source.found.digest if source.found else None
        return KeysView(digest, source.problem, source.mark, self._refusal(key))

    def document(self, key: Key) -> bytes | None:
        """The set for the relay of this server, if it is to have another: no key until some are known."""
        source = self._by_key.get(key)
        return None if source is None else (source.found or keys.empty(source.mark)).document

    def brought(self, key: Key, document: bytes, refusal: str) -> None:
        """The relay took a set, or refused it for a reason."""
        if not refusal:
            self._refusals.pop(key, None)
        elif self._refusals.get(key) != (document, refusal):
            self._refusals[key] = document, refusal
            self._wake(key)

    def _refusal(self, key: Key) -> str:
        document, words = self._refusals.get(key, (None, ""))
        return words if document == self.document(key) else ""

    def forget(self, key: Key) -> None:
        """The server has no issuer any more; what nobody uses is not followed."""
        self._unknown.pop(key, None)
        self._refusals.pop(key, None)
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
            source = self._sources[place] = _Source(*place, self._now())
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
            pause = self._pause(source)
            calm = min(self._cooldown, pause)
            await asyncio.sleep(calm)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(source.asked.wait(), pause - calm)
            source.asked.clear()

    def _pause(self, source: _Source) -> float:
        if not source.problem:
            return self._refresh
        pause = min(FIRST_SECONDS * 2.0 ** min(source.failures - 1, 10), self._refresh)
        rest = source.confirmed + self._max_age - self._now()
        return min(pause, rest) if rest > 0 else pause

    async def _fetch(self, source: _Source) -> None:
        try:
            found = keys.key_set(await self._document(source), source.mark)
        except (IssuerError, KeySetError, KubeError) as error:
            source.failures += 1
            rest = self._outlive(source)
            source.problem = f"{source.field}: the keys cannot be fetched: {error}{rest}"
            return
        source.found, source.confirmed = found, self._now()
        source.failures = source.failures + 1 if found.problem else 0
        source.problem = f"{source.field}: {found.problem}: nobody is let in" if found.problem else ""

    def _outlive(self, source: _Source) -> str:
        """What becomes of keys whose issuer cannot be asked; they have an end: some may be taken back."""
        if self._now() - source.confirmed >= self._max_age:
            source.found = keys.empty(source.mark)
            return f"; that is so for {self._max_age / 60:g} minutes: keys from before are used no more"
        if source.found is None or source.found.problem:
            return ""
        return "; the keys that it sent before are used"

    async def _document(self, source: _Source) -> dict[str, Any]:
        if source.jwks_uri is not None:
            return await self._issuers.document(source.jwks_uri)
        if await self._is_cluster(source.issuer):
            return await self._kube.document(_CLUSTER_KEYS)
        place = keys.location(await self._configuration(source.issuer), source.issuer)
        return await self._issuers.document(place)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

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
