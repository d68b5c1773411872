"""What a server without sessions tells: by the subscription it belongs to, or by the call."""

from collections.abc import Callable

from mcp_sidecar.core import attribution, frames
from mcp_sidecar.core.modern import subscriptions
from mcp_sidecar.session.clients import Client
from mcp_sidecar.session.modern.calls import Caller, ListenCall
from mcp_sidecar.session.modern.feed import Feed
from mcp_sidecar.session.shared import Shared


class Notices:
    """Takes what is for clients without sessions, and gives back what may be for those with one."""

    def __init__(self, shared: Shared, feed: Feed, deliver: Callable[[Client, bytes], bool]) -> None:
        self._shared = shared
        self._feed = feed
        self._deliver = deliver

    def take(self, frame: frames.Frame) -> frames.Frame | None:
        """Deal with a notification; what is left of it for the sessions, or None."""
        if frame.method == "notifications/cancelled":
            self._ended(frames.own_id(frame.params.get("requestId")))
            return None
        if frame.method == "notifications/message":
            self._log(frame)
            return None
        subscription = subscriptions.subscription(frame.params)
        if subscription is None:
            return frame
        return self._of_subscription(frame, frames.own_id(subscription))

    def _of_subscription(self, frame: frames.Frame, number: int | None) -> frames.Frame | None:
        call = self._shared.table.get(number) if number is not None else None
        if isinstance(call, ListenCall):
            if not call.tell((call.tagged(frame.data, "params"),)):
                self._dropped("no_stream")
            return None
        if number is None or not self._feed.heard(number, frame.method):
            self._unheard(number)
            return None
        data = subscriptions.untagged(frame.data, frame.params)
        return frames.Frame(frame.kind, data, frame.method, None, frame.params, 0, 0)

    def _unheard(self, number: int | None) -> None:
        """End a subscription that an earlier life of this relay had left behind."""
        if number is not None and not self._feed.knows(number):
            params = {"requestId": number, "reason": "nobody listens any more"}
            self._shared.say(frames.notification("notifications/cancelled", params))

    def _ended(self, number: int | None) -> None:
        """The server ends a subscription: nothing else may it cancel."""
        call = self._shared.table.get(number) if number is not None else None
        if isinstance(call, ListenCall) and number is not None:
            self._shared.table.take(number)
            call.end()

    def _log(self, frame: frames.Frame) -> None:
        """Nothing links it to a call: it is known whose it is only when one alone asked for such messages."""
        owner = attribution.sole_owner(o for o in self._shared.table.owners() if self._listens(o))
        if owner is None or owner.ended:
            self._dropped("log_without_owner")
        elif owner.hears(frame.params.get("level"), self._shared.interests) and not self._deliver(
            owner, frame.data
        ):
            self._dropped("no_stream")

    def _listens(self, owner: Client) -> bool:
        return not isinstance(owner, Caller) or owner.level is not None

    def _dropped(self, reason: str) -> None:
        self._shared.metrics.count("mcp_relay_messages_dropped", reason)
