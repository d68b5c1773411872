"""From the clients to the server: requests, notifications and answers to the server's own requests."""

import asyncio
from collections.abc import Callable
from typing import Any

from mcp_sidecar.core import frames, interests, jsontext, methods
from mcp_sidecar.session.calls import Call, RefusedError
from mcp_sidecar.session.clients import MAX_CALLS, Client
from mcp_sidecar.session.shared import Shared


class Outbound:
    """Sends what clients want, under ids of the relay's own."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._table = shared.table
        self._loop = asyncio.get_running_loop()
        self._table.on_timeout = self._timed_out
        self._table.on_quiet = self._quiet
        self.on_interests: Callable[[], None] = lambda: None
        """What sessions want of a server without sessions has changed."""
        self._special = {
            "logging/setLevel": self._set_level,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
        }

    def request(self, client: Client, frame: frames.Frame, *, sse: bool) -> Call:
        """Start a call. The session with the server is up.

        Raises:
            RefusedError: the request gets an error at once.

        """
        now = self._loop.time()
        offered = methods.may_request(frame.method, self._shared.revision, self._shared.capabilities)
        self.check(client, frame, offered=offered)
        call = Call(client, frame, now, sse=sse)
        special = self._special.get(frame.method)
        data = frame.data if special is None else special(client, frame, call)
        if data is None:
            call.finish((frames.result(call.raw_id),), "ok")
            client.left(call.id, now)
            return call
        number = self._table.number()
        if not self._shared.send(self.rewritten(frame, data, number, call)):
            name = self._shared.settings.server_name
            refusal = RefusedError(frames.SERVER_ERROR, f"MCP server {name!r} is not connected")
            call.refuse(refusal, "refused")
            raise refusal
        self._table.add(number, call)
        return call

    def check(self, client: Client, frame: frames.Frame, *, offered: bool) -> None:
        """Whether a session may have one more call; `offered`: the server has the method.

        Raises:
            RefusedError: it may not.

        """
        if frame.id in client.calls:
            raise RefusedError(
                frames.INVALID_REQUEST, "Invalid request: an open request of this session has the same id"
            )
        if not offered:
            raise RefusedError(
                frames.METHOD_NOT_FOUND, f"Method not found: the server does not offer {frame.method!r}"
            )
        if self._shared.early.take((client.key, frame.id), self._loop.time()):
            raise RefusedError(frames.INTERNAL_ERROR, "Request cancelled")
        if len(client.calls) >= MAX_CALLS:
            raise RefusedError(
                frames.SERVER_ERROR, f"This session has {MAX_CALLS} open requests; wait for their answers"
            )

    def rewritten(self, frame: frames.Frame, data: bytes, number: int, call: Call) -> bytes:
        """The frame as the server gets it: id and progress token are the upstream id."""
        raw = b"%d" % number
        meta = frame.params.get("_meta")
        if isinstance(meta, dict) and "progressToken" in meta:
            start, end = jsontext.byte_span(data, "params", "_meta", "progressToken")
            call.token = data[start:end]
            data = data[:start] + raw + data[end:]
        if data is frame.data:
            return frame.with_id(raw)
        start, end = jsontext.find_id(data, frame.id)
        return data[:start] + raw + data[end:]

    def _set_level(self, client: Client, frame: frames.Frame, call: Call) -> bytes | None:
        shared, level = self._shared, frame.params.get("level")
        if level not in interests.LEVELS:
            return frame.data
        needed = shared.interests.level_with(client.key, level)

        def settled(ok: bool) -> None:
            if ok and not client.ended:
                shared.interests.levels[client.key] = level
                shared.level = needed
                shared.save_interests()

        if needed == shared.level:
            settled(True)
            return None
        call.on_result = settled
        return jsontext.replace(frame.data, b'"%b"' % needed.encode(), "params", "level")

    def _subscribe(self, client: Client, frame: frames.Frame, call: Call) -> bytes | None:
        shared, uri = self._shared, frame.params.get("uri")
        if not isinstance(uri, str):
            return frame.data
        reason = shared.interests.refusal(client.key, uri)
        if reason is not None:
            text = f"Subscription refused: {reason}"
            raise RefusedError(frames.SERVER_ERROR, text, {"reason": "subscription_limit"})
        shared.interests.claim(client.key, uri)

        def settled(ok: bool) -> None:
            shared.interests.release(client.key, uri)
            if ok and not client.ended:
                shared.interests.subscribe(client.key, uri)
                shared.save_interests()
            elif ok and uri not in shared.interests.subscribers:
                self.own("resources/unsubscribe", {"uri": uri})

        if uri in shared.interests.subscribers:
            settled(True)
            return None
        call.on_result = settled
        return frame.data

    def _unsubscribe(self, client: Client, frame: frames.Frame, _call: Call) -> bytes | None:
        uri = frame.params.get("uri")
        if not isinstance(uri, str):
            return frame.data
        last = self._shared.interests.unsubscribe(client.key, uri)
        self._shared.save_interests()
        return frame.data if last else None

    def own(self, method: str, params: dict[str, Any]) -> None:
        """Send a request of the relay's own whose answer does not matter."""
        number = self._table.number()
        self._table.add_own(number, lambda _message: None)
        self._shared.send(frames.request(number, method, params))

    def replay_interests(self) -> None:
        """Tell a new process what the sessions of the old one had asked for."""
        shared = self._shared
        if shared.modern:
            return  # it was told with the subscriptions, and is told with each request
        level = shared.interests.level()
        if level is not None and methods.may_request(
            "logging/setLevel", shared.revision, shared.capabilities
        ):
            self.own("logging/setLevel", {"level": level})
        shared.level = level
        if methods.may_request("resources/subscribe", shared.revision, shared.capabilities):
            for uri in shared.interests.subscribers:
                self.own("resources/subscribe", {"uri": uri})

    def notification(self, client: Client, frame: frames.Frame) -> None:
        """Take a client's notification."""
        if frame.method == "notifications/cancelled":
            self._cancel(client, frame)
        elif frame.method == "notifications/progress":
            if any(a.client is client and a.on_answer is None for a in self._shared.asked.values()):
                self._shared.send(frame.data)
        elif methods.may_notify(frame.method, self._shared.capabilities):
            self._shared.send(frame.data)
        elif frame.method != "notifications/initialized":
            self._shared.metrics.count("mcp_relay_messages_dropped", "notification_not_offered")

    def _cancel(self, client: Client, frame: frames.Frame) -> None:
        wanted = frame.params.get("requestId")
        if isinstance(wanted, bool) or not isinstance(wanted, str | int | float):
            return
        number = client.calls.get(wanted)
        call = self._table.abandon(number) if number is not None else None
        if call is not None and number is not None:
            self._shared.say(jsontext.replace(frame.data, b"%d" % number, "params", "requestId"))
            call.refuse(RefusedError(frames.INTERNAL_ERROR, "Request cancelled"), "cancelled")
        elif wanted not in client.recent:
            self._shared.early.add((client.key, wanted), self._loop.time())

    def response(self, client: Client, frame: frames.Frame) -> None:
        """Take a client's answer to a request of the server."""
        number = frames.own_id(frame.id)
        asked = self._shared.asked.get(number) if number is not None else None
        if number is None or asked is None or asked.client is not client:
            self._shared.metrics.count("mcp_relay_messages_dropped", "answer_to_nothing")
            return
        del self._shared.asked[number]
        if asked.on_answer is not None:
            asked.on_answer(frame)
        else:
            self._shared.say(frame.with_id(asked.raw_id))

    def client_ended(self, client: Client, reason: str) -> None:
        """A session is over: its calls, questions and wishes end with it."""
        shared = self._shared
        shared.metrics.count("mcp_relay_sessions_ended", reason)
        for number in list(client.calls.values()):
            self.give_up(
                number, RefusedError(frames.SERVER_ERROR, "The session was ended while the call ran"), "ended"
            )
        for number, asked in list(shared.asked.items()):
            if asked.client is client:
                del shared.asked[number]
                if asked.on_answer is None:
                    shared.say(frames.error(asked.raw_id, frames.SERVER_ERROR, "The client is gone"))
        if shared.interests.has(client.key):
            self.forget(client.key)
            shared.save_interests()

    def forget(self, key: str) -> None:
        """Forget what a session wanted."""
        unwanted = self._shared.interests.forget(key)
        if self._shared.modern:
            self.on_interests()
            return
        for uri in unwanted:
            self.own("resources/unsubscribe", {"uri": uri})

    def forget_absent(self) -> None:
        """Forget what sessions of an earlier relay wanted that have not come back."""
        shared = self._shared
        absent = [key for key in shared.interests.sessions() if shared.clients.by_key(key) is None]
        for key in absent:
            self.forget(key)
        if absent:
            shared.save_interests()

    def give_up(self, number: int, refusal: RefusedError, outcome: str) -> None:
        """End an open call that the server may still work on."""
        call = self._table.abandon(number)
        if call is not None:
            self._tell_cancelled(number, str(refusal))
            call.refuse(refusal, outcome)

    def _tell_cancelled(self, number: int, reason: str) -> None:
        self._shared.say(
            frames.notification("notifications/cancelled", {"requestId": number, "reason": reason})
        )

    def _timed_out(self, number: int, call: Call, seconds: float) -> None:
        settings = self._shared.settings
        what = f"tool '{call.subject}'" if call.method == "tools/call" else f"request '{call.method}'"
        text = f"MCP {what} on server '{settings.server_name}' timed out after {seconds:g} seconds"
        self._tell_cancelled(number, text)
        call.refuse(RefusedError(frames.TIMED_OUT, text), "timeout")

    def _quiet(self, call: Call) -> None:
        """Nothing was heard of a call for a while: open its stream, so that no proxy cuts it."""
        call.tell(())
