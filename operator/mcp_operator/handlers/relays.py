"""Watches the relays: one long-poll per running pod; what it hears wakes the reconcile of the pod's owner."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from mcp_operator.adapters.errors import KeysRefusedError, UnreachableError, UnreadableError
from mcp_operator.adapters.relay import Endpoint, Relay
from mcp_operator.core.naming import Key
from mcp_operator.core.observation import RelayView
from mcp_operator.handlers import tasks

logger = logging.getLogger(__name__)

# A relay that starts, or restarts, is asked again quickly; the failures are counted at the slow pace.
FIRST_RETRY_SECONDS: Final = 0.05
QUICK_TRIES: Final = 20
LAST_RETRY_SECONDS: Final = 1.0
GROWTH: Final = 1.5
# All relays together may give so many signs of life a second; where they are few, each gives five.
BEATS_PER_SECOND: Final = 250
BEAT_SECONDS: Final = 0.2


@dataclass
class _Watch:
    """The watch of one pod's relay, and what it has heard."""

    uid: str
    relay: Relay
    view: RelayView = field(default_factory=RelayView)
    task: asyncio.Task[None] | None = None


class RelayWatches:
    """What is known of the relay of each owner's newest pod."""

    def __init__(self, wake: Callable[[Key], None], wait: float, spacing: float) -> None:
        self._wake = wake
        self._wait = wait
        self._spacing = spacing
        self._watches: dict[Key, _Watch] = {}

    def view(self, key: Key, uid: str) -> RelayView:
        """What the relay of this pod last said."""
        watch = self._watches.get(key)
        return watch.view if watch is not None and watch.uid == uid else RelayView()

    def follow(self, key: Key, uid: str, endpoint: Endpoint, *, answered_before: bool = False) -> None:
        """Watch the relay of this pod; no other pod of the same owner.

        `answered_before`: it answered an earlier operator, so silence is a failure from the first moment.
        """
        known = self._watches.get(key)
        if known is not None and (known.uid, known.relay.endpoint) == (uid, endpoint):
            return
        self.leave(key)
        watch = self._watches[key] = _Watch(uid, Relay(endpoint))
        watch.task = tasks.start(
            f"the watch of the relay of {key[0]}/{key[1]}",
            self._watch(key, watch, answered_before),
            lambda: self._died(key, watch),
        )

    def leave(self, key: Key, but: str | None = None) -> None:
        """Stop watching for this owner, unless it is the pod with the UID `but`."""
        watch = self._watches.get(key)
        if watch is not None and watch.uid != but:
            del self._watches[key]
            if watch.task is not None:
                watch.task.cancel()

    async def reconnect(self, key: Key) -> None:
        """Tell the relay to reconnect. One that does not answer is restarted by its liveness probe."""
        watch = self._watches.get(key)
        if watch is None:
            return
        try:
            await watch.relay.reconnect()
        except UnreachableError as error:
            logger.info("%s/%s: the relay did not take the order to reconnect: %s", *key, error)

    async def bring_keys(self, key: Key, document: bytes) -> bool:
        """Give the relay the keys of its clients' token issuer; False when it cannot be reached.

        Raises:
            KeysRefusedError: it does not take them.

        """
        watch = self._watches.get(key)
        if watch is None:
            return False
        try:
            await watch.relay.bring_keys(document)
        except KeysRefusedError:
            raise
        except UnreachableError as error:
            logger.info("%s/%s: the issuer's keys cannot be brought to the relay: %s", *key, error)
            return False
        return True

    async def close(self) -> None:
        """Stop all watches. Idempotent."""
        running = [watch.task for watch in self._watches.values() if watch.task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._watches.clear()

    def _beat(self) -> float:
        return max(BEAT_SECONDS, len(self._watches) / BEATS_PER_SECOND)

    def _died(self, key: Key, watch: _Watch) -> None:
        """A reconcile begins the watch anew, but not without pause."""
        if self._watches.get(key) is watch:
            del self._watches[key]
            asyncio.get_running_loop().call_later(self._spacing, self._wake, key)

    async def _watch(self, key: Key, watch: _Watch, answered: bool) -> None:
        pace = _Pace(asyncio.get_running_loop().time, self._spacing)
        async with watch.relay:
            while True:
                view = watch.view
                known = view.status if view.failures == 0 and not pace.failing else None
                try:
                    told = await watch.relay.status(known, self._wait, self._beat())
                except UnreachableError as error:
                    count = pace.failed(answered_before=answered, silent=error.silent)
                    self._publish(
                        key, watch, replace(view, failures=view.failures + count, message=str(error))
                    )
                    await asyncio.sleep(pace.delay())
                except UnreadableError as error:
                    pace.answered()
                    answered = True
                    self._publish(key, watch, RelayView(unreadable=str(error)))
                    await asyncio.sleep(self._spacing)
                else:
                    pace.answered()
                    answered = True
                    self._publish(key, watch, RelayView(told))

    def _publish(self, key: Key, watch: _Watch, view: RelayView) -> None:
        before = watch.view
        watch.view = view
        if replace(before, message="") != replace(view, message=""):
            self._wake(key)


class _Pace:
    """When a failed poll is repeated, and when it counts as the next failure in a row.

    A connection that breaks once and works again at once was no failure. A relay that never answered yet is
    starting: its failures count only from the second interval on. One that has answered and now lets a
    request wait for longer than it may hangs: that counts at once.
    """

    def __init__(self, clock: Callable[[], float], spacing: float) -> None:
        self._clock = clock
        self._spacing = spacing
        self._tries = 0
        self._counts_from = 0.0

    @property
    def failing(self) -> bool:
        return self._tries > 0

    def answered(self) -> None:
        self._tries = 0

    def failed(self, answered_before: bool, silent: bool = False) -> int:
        """1 if this failure counts, else 0."""
        now = self._clock()
        self._tries += 1
        if self._tries == 1:
            self._counts_from = now if answered_before else now + self._spacing
            if not (silent and answered_before):
                return 0
        if now < self._counts_from:
            return 0
        self._counts_from = now + self._spacing
        return 1

    def delay(self) -> float:
        """Seconds until the next try."""
        slower = min(max(self._tries - QUICK_TRIES, 0), 30)
        return min(LAST_RETRY_SECONDS, FIRST_RETRY_SECONDS * GROWTH**slower)
