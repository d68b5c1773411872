"""Carries frames to a remote server, each in a task of its own, until they have an answer or an error."""

import asyncio
import functools
import logging
from collections.abc import Callable
from typing import Any

from mcp_sidecar import log
from mcp_sidecar.core import frames
from mcp_sidecar.core.document import MAX_MESSAGE, cut
from mcp_sidecar.core.fate import Fate
from mcp_sidecar.core.lines import Line
from mcp_sidecar.core.modern.methods import LISTEN
from mcp_sidecar.core.target import SSE
from mcp_sidecar.remote.client import BrokenError, NotSentError
from mcp_sidecar.remote.exchange import Exchanger
from mcp_sidecar.remote.outcome import Outcome
from mcp_sidecar.remote.session import AwayError, DoubtError, GoneError, Session

PATIENCE_SECONDS = 30.0
"""How long a frame waits for a session, or for a server that wants nothing now."""
MAX_AFTER_SECONDS = 300.0
"""Of what a server may ask for by Retry-After: afterwards it is asked whether it still thinks so."""
MAX_OPEN = 1000
# It may be about this request alone: a probe tells.
_DOUBTFUL = frozenset({Fate.DOUBTED, Fate.DENIED})
_FIRST_STEP = 0.5
_LAST_STEP = 8.0
TakeAbout = Callable[[Line, int | None], None]
"""Takes a message of the server, and the number of the request on whose own stream it came."""


class FailedError(Exception):
    """The caller gets an error; `data` says of what kind."""

    def __init__(self, text: str, reason: str, *, unknown: bool = False) -> None:
        outcome = {"outcome": "unknown"} if unknown else {}
        super().__init__(text + (". Whether the call had an effect is unknown" if unknown else ""))
        self.data: dict[str, Any] = {"reason": reason, **outcome}


class _Errand:
    """A frame on its way."""

    __slots__ = ("asking", "ends", "frame", "home", "replayed", "step")

    def __init__(self, frame: frames.Frame, ends: float, home: Session | None) -> None:
        self.frame = frame
        self.home = home
        """The session when it was sent: what is no request means nothing in another one."""
        self.ends = ends
        self.asking = False
        """Whether the server has, or may have, the frame."""
        self.replayed = False
        self.step = _FIRST_STEP


class Courier:
    """`take` gets what the server sends; a request may last `longest` seconds."""

    def __init__(self, exchanger: Exchanger, take: TakeAbout, longest: float, name: str) -> None:
        self._exchanger = exchanger
        self._take = take
        self._longest = longest
        self._name = name
        self._session: Session | None = None
        self._last: Session | None = None
        self._why = "no session yet"
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._tasks: dict[asyncio.Task[None], _Errand] = {}
        self._by_number: dict[int, asyncio.Task[None]] = {}

    @property
    def full(self) -> bool:
        """Whether too many frames are on their way."""
        return len(self._tasks) >= MAX_OPEN

    def open(self, session: Session) -> None:
        """From now on frames are sent in this session."""
        self._session = self._last = session
        if not self._opened.done():
            self._opened.set_result(None)

    def hold(self, why: str) -> None:
        """From now on frames wait; `why` is for those that wait in vain."""
        self._why = why
        if self._session is not None:
            self._session = None
            self._opened = self._loop.create_future()

    def send(self, frame: frames.Frame) -> None:
        """Carry a frame."""
        errand = _Errand(frame, self._loop.time() + PATIENCE_SECONDS, self._last)
        task = self._loop.create_task(self._run(errand))
        self._tasks[task] = errand
        number = frames.own_id(frame.id) if frame.kind is frames.REQUEST else None
        if number is not None:
            self._by_number[number] = task
        task.add_done_callback(lambda done: self._done(done, number))

    def _done(self, task: asyncio.Task[None], number: int | None) -> None:
        self._tasks.pop(task, None)
        if number is not None and self._by_number.get(number) is task:
            del self._by_number[number]
        if not task.cancelled() and task.exception() is not None:
            log.failure("remote_request_failed", task.exception())

    def cancel(self, frame: frames.Frame) -> None:
        """A request is given up: the server is told, if it has heard of it."""
        number = frames.own_id(frame.params.get("requestId"))
        task = self._by_number.pop(number, None) if number is not None else None
        if number is not None and self._session is not None:
            self._session.pending.discard(number)
        errand = self._tasks.get(task) if task is not None else None
        session = self._session
        heard = errand is None or errand.asking
        if heard and not (session is not None and session.modern):  # there, closing the response tells it
            self.send(frame)
        if task is not None:
            task.cancel()

    def answered(self, number: int) -> None:
        """A request has its answer, which came by another way than its own: with SSE as it should."""
        if self._last is None or self._last.transport == SSE:
            return
        task = self._by_number.pop(number, None)
        if task is not None:
            task.cancel()

    async def _run(self, errand: _Errand) -> None:
        limit = None if errand.frame.method == LISTEN else self._longest
        try:
            async with asyncio.timeout(limit):
                await self._carry(errand)
        except TimeoutError:
            log.event("remote_request_given_up", logging.WARNING, method=errand.frame.method)
        except FailedError as error:
            self._fail(errand.frame, error)
        except Exception as error:  # noqa: BLE001 - its caller would wait for ever
            log.failure("remote_request_failed", error)
            text = self._told(f"a defect of the relay ({type(error).__name__})")
            self._fail(errand.frame, FailedError(text, "remote_error", unknown=errand.asking))

    async def _carry(self, errand: _Errand) -> None:
        while True:
            session = await self._usable(errand)
            if errand.frame.kind is not frames.REQUEST and session is not errand.home:
                raise FailedError(self._told("the session that it belongs to is over"), "server_gone")
            errand.asking = True
            number = frames.own_id(errand.frame.id) if errand.frame.kind is frames.REQUEST else None
            if number is not None and session.transport == SSE:
                session.pending.add(number)  # before it is sent: the stream may be the quicker one
            take = functools.partial(self._taken, number)
            try:
                outcome = await self._exchanger.ask(session, errand.frame, take)
            except NotSentError as error:
                errand.asking = False
                self._doubt(session, AwayError("RemoteUnreachable", f"no connection: {error}"))
                continue
            except BrokenError as error:
                session.report(DoubtError(str(error)))
                raise FailedError(self._told(str(error)), "server_gone", unknown=True) from error
            except AwayError as error:
                session.report(DoubtError(str(error)))  # it may be about this request alone
                raise FailedError(self._told(str(error)), "server_unavailable") from error
            if self._settled(session, errand, outcome):
                return
            errand.asking = False

    def _taken(self, number: int | None, data: Line) -> None:
        self._take(data, number)

    def _settled(self, session: Session, errand: _Errand, outcome: Outcome) -> bool:
        """Whether that was all; False: the frame is sent again.

        Raises:
            FailedError: its caller gets an error.

        """
        if outcome.fate in _DOUBTFUL:
            session.report(DoubtError(outcome.text))
        match outcome.fate:
            case Fate.ANSWER | Fate.DOUBTED:
                if session.trouble.done() and frames.own_id(errand.frame.id) in session.pending:
                    raise FailedError(self._told("its stream has ended"), "server_gone", unknown=True)
                return True
            case Fate.RENEW:
                return self._renew(session, errand, outcome)
            case Fate.LATER:
                return self._later(session, errand, outcome)
            case Fate.LOST:
                self._doubt(session, GoneError(outcome.text))
                raise FailedError(self._told(outcome.text), "server_gone", unknown=True)
            case Fate.UNKNOWN:
                raise FailedError(self._told(outcome.text), "remote_error", unknown=True)
        return self._refused(outcome)

    def _renew(self, session: Session, errand: _Errand, outcome: Outcome) -> bool:
        if errand.replayed:  # by a session just made: it is not the session
            return self._refused(outcome)
        errand.replayed = True
        sure = outcome.status >= 300
        self._doubt(session, GoneError(outcome.text) if sure else DoubtError(outcome.text))
        return False

    def _later(self, session: Session, errand: _Errand, outcome: Outcome) -> bool:
        if outcome.status >= 500:
            session.report(DoubtError(outcome.text))
        wait = max(errand.step, min(outcome.after or 0.0, MAX_AFTER_SECONDS))  # "0" is no wish for a storm
        errand.step = min(2 * errand.step, _LAST_STEP)
        session.not_before = max(session.not_before, self._loop.time() + wait)
        self._why = outcome.text
        if session.not_before > errand.ends:
            return self._refused(outcome)
        return False

    def _refused(self, outcome: Outcome) -> bool:
        """The caller gets the server's own error, or one that tells what it answered."""
        if not outcome.body:
            raise FailedError(self._told(outcome.text), "remote_error")
        self._take(outcome.body, None)
        return True

    def _doubt(self, session: Session, problem: Exception) -> None:
        """The session cannot be used: everybody waits until it can, or another one can."""
        session.report(problem)
        if self._session is session:
            self.hold(str(problem))

    async def _usable(self, errand: _Errand) -> Session:
        """The session, once frames may be sent in it.

        Raises:
            FailedError: not in time.

        """
        while True:
            now, session = self._loop.time(), self._session
            if session is not None and session.not_before <= now:
                return session
            if now >= errand.ends:
                text = f"no session within {PATIENCE_SECONDS:g} seconds ({self._why})"
                raise FailedError(self._told(text), "server_unavailable")
            if session is not None and session.not_before > errand.ends:
                text = f"it wants no request for {session.not_before - now:.0f} seconds ({self._why})"
                raise FailedError(self._told(text), "server_unavailable")
            if session is not None:
                await asyncio.sleep(session.not_before - now)
            else:
                await asyncio.wait([self._opened], timeout=errand.ends - now)

    def _told(self, text: str) -> str:
        text = self._exchanger.masked(f"MCP server '{self._name}' did not answer: {text}")
        return cut(text, MAX_MESSAGE)

    def _fail(self, frame: frames.Frame, error: FailedError) -> None:
        if frame.kind is frames.REQUEST:
            self._take(frames.error(frame.raw_id, frames.SERVER_ERROR, str(error), error.data), None)
        else:
            log.event("remote_message_lost", logging.WARNING, method=frame.method, error=str(error))

    def fail_all(self, session: Session, why: str) -> None:
        """No answer comes to what was asked in a session over SSE, which has ended."""
        for number in sorted(session.pending - self._by_number.keys()):
            error = FailedError(self._told(why), "server_gone", unknown=True)
            self._take(frames.error(b"%d" % number, frames.SERVER_ERROR, str(error), error.data), None)
        session.pending &= self._by_number.keys()  # they learn it when their POST is answered

    async def close(self) -> None:
        """End everything that is on its way."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
