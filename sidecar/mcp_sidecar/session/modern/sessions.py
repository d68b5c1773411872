"""Clients with sessions at a server without: what was the session's is kept here, the rest is wrapped."""

import asyncio
from collections.abc import Mapping
from typing import Any

from mcp_sidecar.core import frames, interests, jsontext, methods
from mcp_sidecar.core.lines import Line
from mcp_sidecar.core.modern import envelope, members, results
from mcp_sidecar.core.modern import methods as modern
from mcp_sidecar.session.calls import Call, Parts, RefusedError
from mcp_sidecar.session.clients import Client
from mcp_sidecar.session.modern.feed import Feed
from mcp_sidecar.session.outbound import Outbound
from mcp_sidecar.session.shared import MAX_ASKED, Asked, Shared

MAX_ROUNDS = 16
MAX_QUESTIONS = 64
"""Of one round."""
_KEPT_MESSAGES = 2
"""Times the largest message: requests that are kept for their repetition, all together."""
DEFAULT_LEVEL = "info"
"""From here on a session gets log messages that never named a level."""
_PAUSES = (0.05, 0.1, 0.2)  # seconds before a call is repeated of which the server wanted nothing but that


class SessionCall(Call):
    """A call that may take several requests, because the server wants to know more."""

    __slots__ = ("frame", "kept", "rounds", "sessions")

    def __init__(self, sessions: "Sessions", client: Client, frame: frames.Frame, *, sse: bool) -> None:
        super().__init__(client, frame, asyncio.get_running_loop().time(), sse=sse)
        self.sessions = sessions
        self.frame: frames.Frame | None = frame
        """The request, to be repeated; None when there was no room to keep it."""
        self.kept = 0
        """Bytes of it that count as kept."""
        self.rounds = 0

    def answered(self, line: Line, start: int, end: int, failed: bool) -> None:
        """The server's answer, or its wish to know more."""
        if not failed:
            wish = results.wants_input(line)
            if wish is not None:
                self.sessions.inquire(self, wish)
                return
            plain = results.plain(results.Answer(line, start, end), self.method)
            line, start, end = plain.data, plain.start, plain.end
        super().answered(line, start, end, failed)

    def finish(self, answer: Parts, outcome: str) -> None:
        """End the call, and with it the need to repeat it."""
        super().finish(answer, outcome)
        self.sessions.let_go(self)


class Inquiry:
    """What the client has still to say before a call can be repeated under `number`."""

    def __init__(self, call: SessionCall, number: int, state: object) -> None:
        self.call = call
        self.number = number
        self.state = state
        self.open: dict[int, str] = {}
        """Ids of the questions put to the client -> their keys."""
        self.answers: dict[str, bytes] = {}

    def params(self) -> dict[str, bytes]:
        """What the repetition has more than the first request."""
        answers = b",".join(jsontext.dumps(key) + b":" + raw for key, raw in self.answers.items())
        params = {"inputResponses": b"{%b}" % answers} if self.answers else {}
        if self.state is not None:
            params["requestState"] = jsontext.dumps(self.state)
        return params


class Sessions:
    """Starts calls of clients with sessions; the server can be used when it is asked to."""

    def __init__(self, shared: Shared, outbound: Outbound, feed: Feed) -> None:
        self._shared = shared
        self._outbound = outbound
        self._feed = feed
        self._loop = asyncio.get_running_loop()
        outbound.on_interests = feed.refresh
        self._kept = 0
        self._local = {
            "ping": lambda _client, _params: None,
            "logging/setLevel": self._set_level,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
        }

    def request(self, client: Client, frame: frames.Frame, *, sse: bool) -> Call:
        """Start a call.

        Raises:
            RefusedError: the request gets an error at once.

        """
        local = self._local.get(frame.method)
        offered = modern.may_request(frame.method, self._shared.capabilities)
        foreign = frame.method in (modern.DISCOVER, modern.LISTEN) or frame.method.startswith("tasks/")
        self._outbound.check(client, frame, offered=local is not None or (offered and not foreign))
        call = SessionCall(self, client, frame, sse=sse)
        if local is not None:
            local(client, frame.params)
            call.finish((frames.result(call.raw_id),), "ok")
            client.left(call.id, self._loop.time())
            return call
        number = self._shared.table.number()
        if not self._send(call, frame, number, {}):
            name = self._shared.settings.server_name
            raise RefusedError(frames.SERVER_ERROR, f"MCP server {name!r} is not connected")
        self._shared.table.add(number, call)
        self._keep(call, len(frame.data))
        return call

    def _keep(self, call: SessionCall, size: int) -> None:
        """Keep a request for its repetition, as long as all that are kept have room."""
        if self._kept + size > _KEPT_MESSAGES * self._shared.settings.max_message_bytes:
            call.frame = None
            return
        call.kept = size
        self._kept += size

    def let_go(self, call: SessionCall) -> None:
        """A call ended."""
        self._kept -= call.kept
        call.kept, call.frame = 0, None

    def _send(self, call: SessionCall, frame: frames.Frame, number: int, more: Mapping[str, bytes]) -> bool:
        client = call.client
        entries = self._entries(client)
        data = envelope.wrapped(frame.data, frame.params, entries)
        if more:
            data = members.edited(data, ("params",), put=more)
        return self._shared.send(self._outbound.rewritten(frame, data, number, call))

    def _entries(self, client: Client) -> dict[str, bytes]:
        """The client's envelope; its larger part is written once."""
        if client.envelope is None:
            client.envelope = envelope.texts(envelope.of(client.declared, client.info))
        level = self._level(client)
        return (
            client.envelope
            if level is None
            else {**client.envelope, envelope.LEVEL_KEY: b'"%b"' % level.encode()}
        )

    def _level(self, client: Client) -> str | None:
        if "logging" not in self._shared.capabilities:
            return None
        return self._shared.interests.levels.get(client.key, DEFAULT_LEVEL)

    # What the server has no methods for.

    def _set_level(self, client: Client, params: Mapping[str, Any]) -> None:
        self._need("logging/setLevel")
        level = params.get("level")
        if level not in interests.LEVELS:
            text = f"Invalid params: the level is none of {', '.join(interests.LEVELS)}"
            raise RefusedError(frames.INVALID_PARAMS, text)
        self._shared.interests.levels[client.key] = level
        self._shared.save_interests()

    def _subscribe(self, client: Client, params: Mapping[str, Any]) -> None:
        self._need("resources/subscribe")
        uri = _uri(params)
        reason = self._shared.interests.refusal(client.key, uri)
        if reason is not None:
            text = f"Subscription refused: {reason}"
            raise RefusedError(frames.SERVER_ERROR, text, {"reason": "subscription_limit"})
        self._shared.interests.subscribe(client.key, uri)
        self._shared.save_interests()
        self._feed.refresh()

    def _unsubscribe(self, client: Client, params: Mapping[str, Any]) -> None:
        self._need("resources/subscribe")
        if self._shared.interests.unsubscribe(client.key, _uri(params)):
            self._feed.refresh()
        self._shared.save_interests()

    def _need(self, method: str) -> None:
        if not methods.may_request(method, self._shared.revision, self._shared.capabilities):
            text = f"Method not found: the server does not offer {method!r}"
            raise RefusedError(frames.METHOD_NOT_FOUND, text)

    # What the server wants to know.

    def inquire(self, call: SessionCall, wish: Mapping[str, Any]) -> None:
        """Put the server's questions to the client; with its answers the call is repeated."""
        call.rounds += 1
        questions = wish.get("inputRequests") or {}
        inquiry = Inquiry(call, self._shared.table.number(), wish.get("requestState"))
        self._shared.table.again(inquiry.number, call)
        if not isinstance(questions, Mapping):
            self._fail(inquiry, "asks for nothing that is known")
        elif call.rounds > MAX_ROUNDS or len(questions) > MAX_QUESTIONS:
            self._fail(inquiry, "asks for more without end")
        elif call.frame is None:
            self._fail(inquiry, "asks for more, but the call is too large to be repeated")
        elif not questions:
            pause = _PAUSES[min(call.rounds, len(_PAUSES)) - 1]
            self._loop.call_later(pause, self._repeat, inquiry)
        elif not all(self._ask(inquiry, str(key), question) for key, question in questions.items()):
            self._fail(inquiry, "asks for something that this client does not offer")

    def _ask(self, inquiry: Inquiry, key: str, question: Any) -> bool:
        told: Mapping[str, Any] = question if isinstance(question, Mapping) else {}
        method, params = str(told.get("method")), told.get("params") or {}
        wanted = methods.SERVER_REQUESTS.get(method) if isinstance(params, dict) else None
        client = inquiry.call.client
        if wanted is None or wanted not in client.capabilities or len(self._shared.asked) >= MAX_ASKED:
            return False
        number = self._shared.table.number()
        data = frames.request(number, method, params)
        if not inquiry.call.tell((data,)) and not (client.stream is not None and client.stream.put((data,))):
            return False
        inquiry.open[number] = key
        asked = Asked(client, number, b"%d" % number, lambda frame: self._answer(inquiry, number, frame))
        self._shared.asked[number] = asked
        inquiry.call.on_result = lambda _ok: self._forget(inquiry)
        self._shared.metrics.count("mcp_relay_server_requests", "delivered")
        return True

    def _answer(self, inquiry: Inquiry, number: int, frame: frames.Frame) -> None:
        key = inquiry.open.pop(number)
        if frame.failed:
            self._end(inquiry, frames.error_of(frame, inquiry.call.raw_id))
            return
        inquiry.answers[key] = members.value(frame.data, "result")
        if sum(map(len, inquiry.answers.values())) > self._shared.settings.max_message_bytes:
            self._fail(inquiry, "cannot be given answers of that size")
        elif not inquiry.open:
            self._repeat(inquiry)

    def _repeat(self, inquiry: Inquiry) -> None:
        frame = inquiry.call.frame
        if frame is None or self._shared.table.get(inquiry.number) is not inquiry.call:
            return  # cancelled, timed out, or the process is gone
        if not self._send(inquiry.call, frame, inquiry.number, inquiry.params()):
            self._fail(inquiry, "is not connected any more")

    def _fail(self, inquiry: Inquiry, why: str) -> None:
        text = f"MCP server '{self._shared.settings.server_name}' {why}"
        self._end(inquiry, frames.error(inquiry.call.raw_id, frames.SERVER_ERROR, text))

    def _end(self, inquiry: Inquiry, body: bytes) -> None:
        self._shared.table.take(inquiry.number)
        inquiry.call.finish((body,), "error")

    def _forget(self, inquiry: Inquiry) -> None:
        for number in inquiry.open:
            self._shared.asked.pop(number, None)


def _uri(params: Mapping[str, Any]) -> str:
    uri = params.get("uri")
    if not isinstance(uri, str):
        raise RefusedError(frames.INVALID_PARAMS, "Invalid params: uri is not a string")
    return uri
