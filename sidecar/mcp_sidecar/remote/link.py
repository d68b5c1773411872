"""The link to a remote server: frames in, frames out, like the one to a launcher.

It keeps one session and makes a new one when the server says that it knows it no more; whoever was waiting
for an answer then gets it from the new session. The handshake itself is the business of the link's listener,
which is asked for it by the message with which a launcher introduces a process.
"""

import asyncio
import contextlib
import logging
import secrets
import time
from pathlib import Path
from typing import Any, Protocol

from mcp_sidecar import log
from mcp_sidecar.core import backoff, frames, jsontext
from mcp_sidecar.core.document import MAX_MESSAGE, Problem, cut
from mcp_sidecar.core.eventstream import Event
from mcp_sidecar.core.fate import Fate
from mcp_sidecar.core.lines import Line, Oversized
from mcp_sidecar.core.modern import envelope
from mcp_sidecar.core.opening import DISCOVER, INITIALIZE
from mcp_sidecar.core.target import SSE, STREAMABLE, Target
from mcp_sidecar.remote.client import BrokenError, Client, NotSentError, context
from mcp_sidecar.remote.courier import MAX_AFTER_SECONDS, Courier
from mcp_sidecar.remote.exchange import Exchanger, FindParams
from mcp_sidecar.remote.memory import Memory
from mcp_sidecar.remote.outcome import Outcome, problem
from mcp_sidecar.remote.probe import Prober
from mcp_sidecar.remote.session import AwayError, DeniedError, DoubtError, GoneError, Session
from mcp_sidecar.remote.stream import fall_back, watch

HANDSHAKES = frozenset({INITIALIZE, DISCOVER})
# A session that ends sooner did not hold: the next one is not made at once.
HELD_SECONDS = 5.0
END_SECONDS = 2.0


class Listener(Protocol):
    """What the link reports."""

    def control(self, message: dict[str, Any]) -> None:
        """A session is to be begun, or goes on; texts were masked."""

    def line(self, line: Line, about: int | None = None) -> None:
        """The server sent a message; `about`: on the stream of the request with this number."""

    def oversized(self, line: Oversized) -> None:
        """A message above the limit was dropped."""

    def unreadable(self, error: Exception) -> None:
        """A message met a defect of the relay; it was dropped."""

    def away(self, problem: Problem) -> None:
        """The server cannot be used now."""


class Link:
    """Keeps the session with `target`.

    Args:
        target: the server.
        listener: who is told.
        name: the server's name, for errors.
        limit: bytes that a message may have.
        patience: seconds that the answer to a handshake may take.
        longest: seconds that a request may take.
        state: folder for what outlives this relay.
        files: folder of the headers' values and the CA certificates.
        params: finds the arguments of a tool that headers repeat.

    Raises:
        OSError: the CA certificates cannot be read.

    """

    def __init__(
        self,
        target: Target,
        listener: Listener,
        *,
        name: str,
        limit: int,
        patience: float,
        longest: float,
        state: Path,
        files: Path,
        params: FindParams,
    ) -> None:
        self._target = target
        self._listener = listener
        self._patience = patience
        tls = context(str(files / target.ca_file) if target.ca_file else "")
        self._client = Client(target.origin, tls if target.origin.scheme == "https" else None)
        self._exchanger = Exchanger(target, self._client, files, limit, params)
        self._courier = Courier(self._exchanger, self._take, longest, name)
        self._memory = Memory(state)
        self._loop = asyncio.get_running_loop()
        self._session: Session | None = self._memory.recall()
        self._incarnation = ""
        self._asked: frames.Frame | None = None
        """The handshake that is under way."""
        self._verdict: asyncio.Future[Problem | None] = self._loop.create_future()
        self._initialized: frames.Frame | None = None
        self._connected = False
        self._wake = asyncio.Event()
        self._probe = Prober(self._exchanger, self._take)
        self._since: float | None = None
        """When the session that is kept now could be used."""

    # What the listener does.

    @property
    def congested(self) -> bool:
        """Whether too much is on its way to the server."""
        return self._courier.full

    def write(self, frame: bytes) -> bool:
        """Send one frame; False when too many are on their way."""
        parsed = frames.parse(frame)
        if parsed.kind is frames.REQUEST and parsed.method in HANDSHAKES:
            self._asked = parsed
            self._decide(None)
        elif parsed.method == "notifications/initialized":
            self._initialized = parsed
        elif parsed.method == "notifications/cancelled":
            self._courier.cancel(parsed)
        elif self._courier.full and parsed.kind is frames.REQUEST:
            return False
        else:
            self._courier.send(parsed)
        return True

    def control(self, message: dict[str, Any]) -> bool:
        """Take a message for a launcher; of these only the wish to hide secrets means something here."""
        if message.get("event") != "mask":
            return False
        texts = [self._exchanger.masked(text) for text in message["texts"]]
        answer = {"event": "masked", "id": message["id"], "texts": texts}
        self._loop.call_soon(self._listener.control, answer)
        return True

    def reconnect(self) -> None:
        """Try now instead of later."""
        self._wake.set()

    def settled(self, revision: str, *, modern: bool) -> None:
        """The listener has understood the answer to its handshake, or goes on with the session."""
        self._connected = True
        if self._session is not None:
            self._session.revision, self._session.modern = revision, modern
        self._asked = None
        self._decide(None)

    def refused(self, why: Problem) -> None:
        """The answer to the handshake cannot be used."""
        self._asked = None
        self._decide(why)

    def _decide(self, why: Problem | None) -> None:
        if not self._verdict.done():
            self._verdict.set_result(why)

    def _take(self, data: Line, about: int | None = None) -> None:
        """Hand a message on, on one line."""
        try:
            self._listener.line(jsontext.one_line(data) if isinstance(data, bytes) else data, about)
        except Exception as error:  # noqa: BLE001 - would end the stream, and come again with the next
            self._listener.unreadable(error)

    def _take_event(self, event: Event, number: int | None) -> None:
        """Hand on what came by a stream of the session: the answer to this request, perhaps."""
        if event.oversized is not None:
            self._listener.oversized(event.oversized)
        elif event.data:
            self._take(event.data)
        if number is not None:
            self._courier.answered(number)

    # The life of the session.

    async def run(self) -> None:
        """Keep a session until cancelled; then end it."""
        attempt = 0
        try:
            while True:
                trouble = await self._kept()
                if trouble is None:
                    continue
                held = self._since is not None and self._loop.time() - self._since >= HELD_SECONDS
                attempt = 0 if held else attempt + 1
                at_once = held or (attempt == 1 and trouble.reason == "SessionLost")
                if not at_once or trouble.after or isinstance(trouble, DeniedError):
                    await self._pause(trouble, max(0, attempt - 1))
        finally:
            await self._end()

    async def _kept(self) -> AwayError | None:
        """Keep the session until something is wrong: what; None: it is to be looked at."""
        self._since = None
        try:
            session = await self._ready()
            self._since = self._loop.time()
            await watch(session, self._exchanger, self._probe, self._look, self._take_event)
        except DoubtError:
            return None
        except GoneError as error:
            self._gone(str(error))
            return AwayError("SessionLost", f"the session is gone: {error}")
        except AwayError as error:
            trouble = error
        except Exception as error:  # noqa: BLE001 - a defect must not end the relay, and its clients' sessions
            log.failure("remote_link_failed", error)
            trouble = AwayError("RemoteUnavailable", f"a defect of the relay ({type(error).__name__})")
        self._down(trouble)
        return trouble

    async def _pause(self, trouble: AwayError, attempt: int) -> None:
        seconds: float | None = max(
            min(trouble.after or 0.0, MAX_AFTER_SECONDS), backoff.delay(self._target.backoff, attempt)
        )
        if isinstance(trouble, DeniedError):
            seconds = self._target.slow or None
        self._wake.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    def _down(self, error: AwayError) -> None:
        log.event("remote_away", logging.WARNING, reason=error.reason, error=self._shown(str(error)))
        self._connected = False
        self._courier.hold(str(error))
        if self._session is not None and self._session.transport == SSE:
            self._drop("the stream of its session has ended")
        text = f"The server at {self._target.url} cannot be used: {error}"
        self._listener.away(Problem(error.phase, error.reason, self._shown(text)))

    def _gone(self, why: str) -> None:
        log.event("remote_session_lost", logging.WARNING, error=self._shown(why))
        self._connected = False
        self._courier.hold(why)
        self._drop(why)
        text = f"The server at {self._target.url} knows the session no more; a new one is made ({why})"
        self._listener.away(Problem("Transport", "SessionLost", self._shown(text)))

    def _shown(self, text: str) -> str:
        return cut(self._exchanger.masked(text), MAX_MESSAGE)

    def _drop(self, why: str) -> None:
        session, self._session = self._session, None
        self._memory.forget()
        if session is not None:
            self._courier.fail_all(session, why)
            session.close()

    async def _ready(self) -> Session:
        """A session that works now.

        Raises:
            AwayError, GoneError: there is none.

        """
        session = self._session
        if session is None:
            return await self._open()
        session.trouble = self._loop.create_future()
        await self._probe(session)
        if session.trouble.done():
            raise session.trouble.result()
        if not self._connected:
            self._introduce(session.incarnation)
            self._initialized = None  # it was told
        if not self._connected:  # the listener knows nothing of it
            self._drop("the relay began anew")
            return await self._open()
        self._up(session)
        return session

    def _introduce(self, incarnation: str) -> None:
        self._listener.control(
            {"event": "hello", "incarnation": incarnation, "pid": 0, "startTime": time.time()}
        )

    def _up(self, session: Session) -> None:
        self._memory.keep(session)
        self._courier.open(session)

    async def _look(self, session: Session) -> None:
        """Ask whether a session still is what a call left doubts of."""
        session.trouble = self._loop.create_future()
        await self._probe(session)
        if not session.trouble.done() or isinstance(session.trouble.result(), DoubtError):
            self._up(session)

    async def _open(self) -> Session:
        """Begin a session.

        Raises:
            AwayError: the server cannot be used.

        """
        if self._asked is None:
            self._incarnation = secrets.token_hex(8)
        session = self._session = Session(self._incarnation, STREAMABLE, self._target.path)
        try:
            if self._target.transport == SSE:
                await fall_back(session, self._exchanger, self._take_event, None)
            if self._asked is None:
                self._introduce(self._incarnation)
            await self._shake_hands(session)
        except BaseException:
            await self._leave(session)
            self._drop("the handshake failed")
            raise
        self._up(session)
        return session

    async def _shake_hands(self, session: Session) -> None:
        while (frame := self._asked) is not None:
            self._verdict = self._loop.create_future()
            if frame.method == DISCOVER:
                session.modern, session.revision = True, envelope.REVISION
            outcome = await self._ask(session, frame)
            if outcome.fate is Fate.FALL_BACK and session.transport == STREAMABLE:
                if self._target.transport == STREAMABLE:
                    raise problem(outcome, initialize=True)
                await fall_back(session, self._exchanger, self._take_event, outcome)
                continue
            if outcome.fate is not Fate.ANSWER:
                raise problem(outcome, initialize=True)
            await self._judged()
        if self._initialized is not None:
            await self._tell_initialized(session, self._initialized)
        session.initialized = True

    async def _ask(self, session: Session, frame: frames.Frame) -> Outcome:
        try:
            async with asyncio.timeout(self._patience):
                begins = frame.kind is frames.REQUEST
                return await self._exchanger.ask(session, frame, self._take, handshake=begins)
        except TimeoutError as error:
            text = f"no answer to {frame.method} within {self._patience:g} seconds"
            raise AwayError("StartupTimeout", text, initialize=True) from error
        except NotSentError as error:
            raise AwayError("RemoteUnreachable", f"no connection: {error}") from error
        except BrokenError as error:
            raise AwayError("RemoteUnreachable", f"no answer to {frame.method}: {error}") from error

    async def _judged(self) -> None:
        """Wait for what the listener makes of the answer; with SSE for the answer, too.

        Raises:
            DeniedError: it cannot be used.

        """
        try:
            async with asyncio.timeout(self._patience):
                why = await self._verdict
        except TimeoutError as error:
            text = f"no answer within {self._patience:g} seconds"
            raise AwayError("StartupTimeout", text, initialize=True) from error
        if why is not None:
            raise RefusedError(why)

    async def _tell_initialized(self, session: Session, frame: frames.Frame) -> None:
        self._initialized = None
        outcome = await self._ask(session, frame)
        if outcome.fate is not Fate.ANSWER:
            raise problem(outcome, initialize=True)

    async def _end(self) -> None:
        await self._courier.close()
        session = self._session
        if session is not None:
            await self._leave(session)
            session.close()
        self._client.close()

    async def _leave(self, session: Session) -> None:
        """Tell the server that the session is over, for at most END_SECONDS."""
        if not session.sid:
            return
        self._memory.forget()
        with contextlib.suppress(NotSentError, BrokenError, AwayError, TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await self._exchanger.end(session)


class RefusedError(DeniedError):
    """The listener could not use the answer to its handshake, and has told so itself."""

    def __init__(self, why: Problem) -> None:
        super().__init__(why.reason, why.message, initialize=True)
