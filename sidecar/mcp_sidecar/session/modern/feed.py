"""The relay's own subscriptions at a server without sessions, for clients with sessions and the status."""

import asyncio
import logging
from typing import Any

from mcp_sidecar import log
from mcp_sidecar.core import frames
from mcp_sidecar.core.modern import subscriptions
from mcp_sidecar.core.modern.methods import LISTEN
from mcp_sidecar.core.modern.subscriptions import Filter
from mcp_sidecar.session.shared import Shared

AGAIN_SECONDS = 1.0


class Feed:
    """One subscription to all `list_changed`, and one to the resources that sessions want.

    A subscription cannot be changed: another set of resources is subscribed anew, and the old subscription
    counts until the new one is acknowledged, so that nothing is missed and nothing told twice.
    """

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._loop = asyncio.get_running_loop()
        self._lists = 0
        self._resources = 0
        self._coming = 0
        self._uris: frozenset[str] = frozenset()

    def open(self) -> None:
        """The server can be used: subscribe to all that is wanted, and to nothing twice."""
        for number in (self._lists, self._resources, self._coming):
            if self._shared.table.take_own(number) is not None:
                self._cancel(number)
        self._resources = self._coming = 0
        self._uris = frozenset()
        self._lists = self._listen(subscriptions.everything(self._shared.capabilities))
        self.refresh()

    def refresh(self) -> None:
        """Sessions want other resources than before."""
        wanted = frozenset(self._shared.interests.subscribers)
        if wanted == self._uris:
            return
        self._uris = wanted
        if self._coming:
            self._cancel(self._coming)
        self._coming = self._listen(subscriptions.for_uris(sorted(wanted)))
        if not self._coming:
            self._settle(0)

    def heard(self, number: int, method: str) -> bool:
        """Whether a notification of this subscription is for the sessions."""
        if method == subscriptions.ACKNOWLEDGED:
            if number == self._coming:
                self._settle(number)
            return False
        return number in (self._lists, self._resources)

    def knows(self, number: int) -> bool:
        """Whether it is one of these subscriptions, or about to be."""
        return number in (self._lists, self._resources, self._coming)

    def _settle(self, number: int) -> None:
        old, self._resources, self._coming = self._resources, number, 0
        if old:
            self._cancel(old)

    def _listen(self, wanted: Filter) -> int:
        """Subscribe; gives the upstream id, 0 when nothing is wanted."""
        if not wanted:
            return 0
        number = self._shared.table.number()

        def ended(message: dict[str, Any] | None) -> None:
            if message is not None and "error" in message:
                log.event("subscription_refused", logging.WARNING, error=str(message["error"])[:500])
            elif message is not None and self.knows(number):
                self._loop.call_later(AGAIN_SECONDS, self._again, number)

        self._shared.table.add_own(number, ended)
        self._shared.send(self._shared.asking(number, LISTEN, {"notifications": wanted.shape()}))
        return number

    def _again(self, number: int) -> None:
        """The server ended a subscription, and goes on: whatever it was for is still wanted."""
        if self._shared.modern and self.knows(number):
            self.open()

    def _cancel(self, number: int) -> None:
        self._shared.table.take_own(number)
        params = {"requestId": number, "reason": "superseded"}
        self._shared.send(frames.notification("notifications/cancelled", params))
