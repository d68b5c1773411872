"""Feeds the cache from kopf's watches and wakes who is concerned.

kopf is the watcher and the host of the process, nothing more: plain event handlers put no finalizers and no
annotations on objects, so that nothing hangs when no operator runs.
"""

import logging
from collections.abc import Callable
from typing import Any

import kopf

from mcp_operator.adapters.kinds import CONFIG_MAPS, SECRETS, SERVERS, WATCHED, Kind
from mcp_operator.core.naming import Key
from mcp_operator.handlers.cache import Cache, key_of
from mcp_operator.handlers.observer import Observer
from mcp_operator.manifests import identity
from mcp_operator.metrics import Metrics

logger = logging.getLogger(__name__)
Json = dict[str, Any]


class Watcher:
    """Takes in what the watches deliver."""

    def __init__(
        self,
        cache: Cache,
        observer: Observer,
        wake: Callable[[Key], None],
        relisted: Callable[[Kind], None],
        metrics: Metrics,
    ) -> None:
        self._cache = cache
        self._observer = observer
        self._wake = wake
        self._relisted = relisted
        self._metrics = metrics

    def take(self, kind: Kind, event: str | None, found: Json) -> None:
        """One event; `event` None: an object of a list."""
        self._metrics.events.labels(kind.plural).inc()
        if event is None:
            self._relisted(kind)
        changed = self._cache.remove(kind, found) if event == "DELETED" else self._cache.put(kind, found)
        if changed:
            self.tell(kind, found)

    def tell(self, kind: Kind, found: Json) -> None:
        """Wake everyone whom a change of this object concerns."""
        if kind is SERVERS:
            self._wake(key_of(found))
            return
        owner = identity.owner_key(found)
        if owner is not None:
            self._wake(owner)
        if kind is SECRETS or kind is CONFIG_MAPS:
            for key in self._observer.referring(kind, key_of(found)):
                self._wake(key)


def register(registry: kopf.OperatorRegistry, watcher: Watcher) -> None:
    """Have kopf watch all kinds."""
    for kind in WATCHED:
        kopf.on.event(kind.group, kind.version, kind.plural, registry=registry, id=f"watch-{kind.plural}")(
            _handler(watcher, kind)
        )


def _handler(watcher: Watcher, kind: Kind) -> Callable[..., Any]:
    async def take(event: Any, **_: Any) -> None:
        watcher.take(kind, event["type"], dict(event["object"]))

    return take
