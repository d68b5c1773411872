"""Clients without sessions at a server with a handshake: unwrapped, completed, and kept waiting when it asks.

A request of the server becomes the answer `input_required` to the call in flight; the call itself goes on
upstream, parked under the name that `requestState` carries, until the client repeats it with its answers.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from mcp_sidecar.core import frames, interests, jsontext
from mcp_sidecar.core.lines import Line
from mcp_sidecar.core.methods import CLIENT_CAPABILITIES
from mcp_sidecar.core.modern import discover, envelope, members, methods, results
from mcp_sidecar.core.modern.envelope import Envelope
from mcp_sidecar.core.modern.errors import RejectionError
from mcp_sidecar.core.modern.state import States, binding
from mcp_sidecar.session.calls import Call, Parts, RefusedError
from mcp_sidecar.session.clients import Client
from mcp_sidecar.session.modern.calls import Caller, ModernCall
from mcp_sidecar.session.outbound import Outbound
from mcp_sidecar.session.shared import Shared

PARKED_SECONDS = 120.0
"""Time for a client to come back with its answers. Meanwhile nobody else can be asked anything."""
MAX_QUESTIONS = 64
"""Of one call at a time."""
MAX_QUESTIONS_BYTES = 4 * 1024 * 1024


class Answerer(Caller):
    """The sender of one call, which the server may ask something while it works on that call."""

    __slots__ = ("bound", "call", "on_question", "parked", "questions", "timer")

    def __init__(self, subject: str, said: Envelope, bound: bytes, now: float) -> None:
        super().__init__(subject, said.capabilities, said.log_level, now)
        self.bound = bound
        """What the request is known by when it comes again."""
        self.call: ModernCall | None = None
        """The request that waits for an answer; None while the call is parked."""
        self.parked: ParkedCall | None = None
        self.questions: dict[int, bytes] = {}
        """Number -> text of what the server asked and has no answer to."""
        self.timer: asyncio.TimerHandle | None = None
        self.on_question: Callable[[], None] = lambda: None

    def ask(self, number: int, frame: frames.Frame) -> bool:
        """Take a question of the server; False when it cannot be put to the client."""
        asked = self.call or self.parked
        if asked is None or asked.method not in methods.MAY_ASK or len(self.questions) >= MAX_QUESTIONS:
            return False
        params = members.value(frame.data, "params") if frame.params else b"{}"
        if sum(map(len, self.questions.values())) + len(params) > MAX_QUESTIONS_BYTES:
            return False
        self.questions[number] = b'{"method":%b,"params":%b}' % (jsontext.dumps(frame.method), params)
        self.on_question()
        return True

    def withdraw(self, number: int) -> None:
        """The server needs no answer any more."""
        self.questions.pop(number, None)


class BridgedCall(ModernCall):
    """A call of a client without a session, in the hands of a server with a handshake."""

    __slots__ = ("info",)

    def __init__(self, client: Client, frame: frames.Frame, info: bytes, *, sse: bool) -> None:
        super().__init__(client, frame, asyncio.get_running_loop().time(), sse=sse)
        self.info = info
        """The server's identity, as JSON."""

    def answered(self, line: Line, start: int, end: int, failed: bool) -> None:
        """The server's answer, in the shape of the client's revision."""
        given = results.Answer(line, start, end)
        if failed:
            renamed = results.renamed(bytes(line), self.method)
            fitting = results.changed(given, renamed) if renamed != line else given
        else:
            fitting = results.completed(given, self.method, self.info)
        super().answered(fitting.data, fitting.start, fitting.end, failed)


class ParkedCall(Call):
    """Stands for a call while its client is away; what becomes of it meanwhile is kept."""

    __slots__ = ("outcome_of",)

    def __init__(self, call: Call) -> None:
        # Not the request itself: it may be large, and is not needed any more.
        name = frames.Frame(frames.REQUEST, call.raw_id, call.method, call.id, {}, 0, len(call.raw_id))
        super().__init__(call.client, name, call.started, sse=False)
        self.outcome_of: Callable[[Call], None] | None = None
        """Ends another call as this one was ended; None: it was not."""

    def answered(self, line: Line, start: int, end: int, failed: bool) -> None:
        """The server's answer, kept until somebody asks for it."""
        self.outcome_of = lambda call: call.answered(line, start, end, failed)

    def finish(self, answer: Parts, outcome: str) -> None:
        """The call ended with an answer of the relay's own."""
        text = b"".join(answer)
        self.outcome_of = lambda call: call.finish((jsontext.replace(text, call.raw_id, "id"),), outcome)

    def refuse(self, refusal: RefusedError, outcome: str) -> None:
        """The call failed."""
        self.outcome_of = lambda call: call.refuse(refusal, outcome)


class Bridge:
    """Starts, parks and resumes such calls."""

    def __init__(self, shared: Shared, outbound: Outbound) -> None:
        self._shared = shared
        self._outbound = outbound
        self._loop = asyncio.get_running_loop()
        self._states = States(shared.settings.signing_key, shared.settings.server_uid)
        self._parked: dict[str, Answerer] = {}
        self._answer: Mapping[str, Any] | None = None
        self._info = b"null"

    def request(self, frame: frames.Frame, said: Envelope, subject: str, *, sse: bool) -> ModernCall:
        """Start a call, or go on with one that is parked.

        Raises:
            RefusedError: the request gets an error at once.
            RejectionError: it breaks a rule of the revision.

        """
        if frame.params.get("requestState") is not None:
            return self._resume(frame, subject, binding(frame.method, frame.params), sse=sse)
        # Nothing is asked of who offers nothing: no need to know the request again.
        askable = not said.capabilities.keys().isdisjoint(CLIENT_CAPABILITIES)
        bound = binding(frame.method, frame.params) if askable else b""
        caller = Answerer(subject, said, bound, self._loop.time())
        call = self._call(caller, frame, sse=sse)
        number = self._shared.table.number()
        data = envelope.stripped(frame.data, frame.params)
        self._want_level(said.log_level)
        if not self._shared.send(self._outbound.rewritten(frame, data, number, call)):
            name = self._shared.settings.server_name
            raise RefusedError(frames.SERVER_ERROR, f"MCP server {name!r} is not connected", status=503)
        self._shared.table.add(number, call)
        return call

    def discover(self, call: ModernCall) -> None:
        """Answer `server/discover` from what the server answered to `initialize`."""
        answer = discover.from_initialize(self._shared.store.answer or {})
        call.finish((frames.result(call.raw_id, jsontext.dumps(answer)),), "ok")

    def _identity(self) -> bytes:
        """The server's identity as JSON, written once for each server process."""
        answer = self._shared.store.answer or {}
        if answer is not self._answer:
            self._answer, self._info = answer, jsontext.dumps(answer.get("serverInfo"))
        return self._info

    def _call(self, caller: Answerer, frame: frames.Frame, *, sse: bool) -> BridgedCall:
        call = BridgedCall(caller, frame, self._identity(), sse=sse)
        caller.call = call

        def soon() -> None:
            self._loop.call_soon(self._park, caller)  # with all questions of the same moment

        caller.on_question = soon
        return call

    def _want_level(self, level: str | None) -> None:
        """Have the server send what this call wants to hear, unless it does so already."""
        shared = self._shared
        if level is None or "logging" not in shared.capabilities:
            return
        if shared.level is None or interests.more_verbose(level, shared.level):
            shared.level = level
            self._outbound.own("logging/setLevel", {"level": level})

    # Calls that wait for their client.

    def _park(self, caller: Answerer) -> None:
        """Answer the request with the server's questions."""
        call = caller.call
        number = caller.calls.get(call.id) if call is not None else None
        if call is None or number is None or not caller.questions:
            return
        caller.call, caller.parked = None, ParkedCall(call)
        self._shared.table.exchange(number, caller.parked)
        self._shared.table.unlimit(number)
        self._parked[caller.key] = caller
        caller.timer = self._loop.call_later(PARKED_SECONDS, self._expire, caller)
        call.finish((frames.result(call.raw_id, self._wish(caller)),), "input_required")

    def _wish(self, caller: Answerer) -> bytes:
        questions = b",".join(b'"%d":%b' % question for question in caller.questions.items())
        expires = time.time_ns() // 1_000_000 + int(PARKED_SECONDS * 1000)
        state = self._states.sign(bytes.fromhex(caller.key), expires, caller.subject, caller.bound)
        return b'{"resultType":"input_required","inputRequests":{%b},"requestState":"%b"}' % (
            questions,
            state.encode(),
        )

    def _resume(self, frame: frames.Frame, subject: str, bound: bytes, *, sse: bool) -> ModernCall:
        now = time.time_ns() // 1_000_000
        key = self._states.verify(frame.params["requestState"], now, subject, bound)
        caller = self._parked.get(key.hex()) if key is not None else None
        if caller is None or caller.parked is None:
            text = "Invalid params: requestState belongs to no call that waits; send the request without it"
            raise RejectionError(frames.INVALID_PARAMS, text)
        answers = _answers(frame)
        parked, caller.parked = caller.parked, None
        self._leave(caller)
        call = self._call(caller, frame, sse=sse)
        self._hand_over(caller, answers)
        if parked.outcome_of is not None:
            parked.outcome_of(call)
            return call
        self._shared.table.exchange(caller.calls[parked.id], call)
        call.token = _token(frame)
        if caller.questions:
            caller.on_question()
        return call

    def _hand_over(self, caller: Answerer, answers: Mapping[str, bytes]) -> None:
        """Give the server the answers that it waits for; others are nobody's business."""
        for number in [n for n in caller.questions if str(n) in answers]:
            del caller.questions[number]
            asked = self._shared.asked.pop(number, None)
            if asked is not None:
                self._shared.say(frames.result(asked.raw_id, answers[str(number)]))

    def _leave(self, caller: Answerer) -> None:
        del self._parked[caller.key]
        if caller.timer is not None:
            caller.timer.cancel()
            caller.timer = None

    def _expire(self, caller: Answerer) -> None:
        """The client did not come back."""
        parked, caller.parked = caller.parked, None
        self._leave(caller)
        self._forget_questions(caller)
        number = caller.calls.get(parked.id) if parked is not None else None
        if number is not None:
            text = "The client did not come back with its answers"
            self._outbound.give_up(number, RefusedError(frames.SERVER_ERROR, text), "expired")

    def _forget_questions(self, caller: Answerer) -> None:
        for number in caller.questions:
            asked = self._shared.asked.pop(number, None)
            if asked is not None:
                self._shared.say(frames.error(asked.raw_id, frames.SERVER_ERROR, "The client is gone"))
        caller.questions.clear()

    def close(self) -> None:
        """Stop the timers."""
        for caller in list(self._parked.values()):
            self._leave(caller)


def _answers(frame: frames.Frame) -> dict[str, bytes]:
    given = frame.params.get("inputResponses") or {}
    if not isinstance(given, Mapping) or not all(isinstance(answer, Mapping) for answer in given.values()):
        raise RejectionError(
            frames.INVALID_PARAMS, "Invalid params: inputResponses is not an object of results"
        )
    return {key: members.value(frame.data, "params", "inputResponses", key) for key in given}


def _token(frame: frames.Frame) -> bytes | None:
    try:
        return members.value(frame.data, "params", "_meta", "progressToken")
    except KeyError:
        return None
