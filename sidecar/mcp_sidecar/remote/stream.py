"""What a remote server sends by itself, and the signs of life of a session."""

import asyncio
from collections.abc import Awaitable, Callable

from mcp_sidecar import log
from mcp_sidecar.core import backoff, eventstream, frames
from mcp_sidecar.core.fate import Fate
from mcp_sidecar.core.target import SSE
from mcp_sidecar.remote.client import BrokenError, NotSentError, Response
from mcp_sidecar.remote.exchange import EVENTS, MAX_RETRY_SECONDS, Exchanger
from mcp_sidecar.remote.outcome import Outcome, problem
from mcp_sidecar.remote.reply import answered
from mcp_sidecar.remote.session import AwayError, DoubtError, GoneError, Session

PING_SECONDS = 30.0
ENDPOINT_SECONDS = 10.0
AGAIN_SECONDS = 1.0
# After a stream that lasted longer than that: its end may be the server's.
AT_ONCE_SECONDS = 0.05
AGAIN_STEPS = (AGAIN_SECONDS, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
"""Seconds until a stream is opened again that is refused, or brings nothing."""
MAX_AFTER_SECONDS = 300.0
# The least between two looks at a session because of calls that failed.
LOOK_SECONDS = 0.2
Look = Callable[[Session], Awaitable[None]]
TakeEvent = Callable[[eventstream.Event, int | None], None]
"""Takes what came by a stream of the session, not of a request; and which request it answers."""
_NEVER = frozenset({405, 501})
# These, too, unless there was one already: they may be about the session, or about the moment.
_NOT_OFFERED = frozenset({400, 404, 406})


async def watch(session: Session, exchanger: Exchanger, probe: Look, look: Look, take: TakeEvent) -> None:
    """Take what the server sends by itself, until the session is in trouble.

    `look` is asked about a session of which a call left doubts; the stream stays open meanwhile.

    Raises:
        AwayError, GoneError, DoubtError: what the trouble is.

    """
    loop = asyncio.get_running_loop()
    tasks = {loop.create_task(_ping(session, probe)), loop.create_task(_looked_at(session, look))}
    if not session.modern and session.transport != SSE:  # whose reader was started with it
        tasks.add(loop.create_task(_Listening(session, exchanger, take).run(probe)))
    try:
        waiting = tasks
        while True:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                one.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _looked_at(session: Session, look: Look) -> None:
    loop, last = asyncio.get_running_loop(), 0.0
    while True:
        await asyncio.wait([session.trouble])  # not itself: who is cancelled would take it along
        trouble = session.trouble.result()
        if not isinstance(trouble, DoubtError):
            raise trouble
        await asyncio.sleep(last + LOOK_SECONDS - loop.time())
        last = loop.time()
        await look(session)


async def _ping(session: Session, probe: Look) -> None:
    while True:
        await asyncio.sleep(PING_SECONDS)
        await probe(session)


class _Listening:
    """Keeps the stream of a session open, if the server offers one."""

    def __init__(self, session: Session, exchanger: Exchanger, take: TakeEvent) -> None:
        self._session = session
        self._exchanger = exchanger
        self._take = take
        self._last_id: str | None = None
        self._misses = 0
        """Attempts in a row that brought no event."""
        self._after = 0.0
        """Seconds that the server asked to wait."""
        self._loop = asyncio.get_running_loop()

    async def run(self, probe: Look) -> None:
        """Take what comes; ends when the server says that there is no stream.

        Raises:
            AwayError, GoneError: the session is in trouble.

        """
        while self._session.streaming:
            try:
                response = await self._opened()
            except AwayError:
                await probe(self._session)  # the stream alone is refused, or everything: that tells
                await self._pause()
                continue
            if response is None:
                self._session.streaming = False
                return
            await self._read(response)

    async def _opened(self) -> Response | None:
        """The stream; None: there is none, which the first refusal tells.

        Raises:
            AwayError: not now.
            GoneError: the session is gone.

        """
        self._after = 0.0
        session = self._session
        try:
            response = await self._exchanger.listen(session, self._last_id)
        except (NotSentError, BrokenError) as error:
            raise AwayError("RemoteUnreachable", f"no connection: {error}") from error
        if response.status == 200 and response.kind == EVENTS and not response.coding:
            session.streamed = True
            return response
        outcome = await self._exchanger.refusal(session, response)
        if session.streamed and outcome.fate is Fate.RENEW:
            raise GoneError(outcome.text)
        if offers_none(outcome.status, streamed=session.streamed):
            return None
        self._after = min(outcome.after or 0.0, MAX_AFTER_SECONDS)
        raise problem(outcome, initialize=False)

    async def _read(self, response: Response) -> None:
        reader, began = eventstream.EventReader(self._exchanger.limit, drop=True), self._loop.time()
        heard = False
        try:
            async for chunk in response.chunks():
                for event in reader.feed(chunk):
                    heard = True
                    self._take(event, _answered(event))
        except BrokenError:
            pass  # opened again, which tells whether the server is there
        finally:
            response.close()
        self._last_id = reader.last_id or self._last_id
        brief = self._loop.time() - began < AGAIN_SECONDS
        if brief and not heard:
            await self._pause(reader.retry)
            return
        self._misses = 0
        least = AGAIN_SECONDS if brief else AT_ONCE_SECONDS
        await asyncio.sleep(min(max(reader.retry or 0.0, least), MAX_RETRY_SECONDS))

    async def _pause(self, asked: float | None = None) -> None:
        wait = max(
            backoff.delay(AGAIN_STEPS, self._misses), min(asked or 0.0, MAX_RETRY_SECONDS), self._after
        )
        self._misses += 1
        await asyncio.sleep(wait)


def offers_none(status: int, *, streamed: bool) -> bool:
    """Whether a refusal says that there is no stream, and will be none; `streamed`: there was one."""
    if status < 400:  # a page for people, for example
        return True
    return status in _NEVER or (status in _NOT_OFFERED and not streamed)


async def fall_back(session: Session, exchanger: Exchanger, take: TakeEvent, refused: Outcome | None) -> None:
    """Make it a session over SSE (revision 2024-11-05); `refused` is what Streamable HTTP was answered.

    Raises:
        AwayError: there is no such server either.

    """
    session.path = exchanger.target.path
    try:
        response = await exchanger.listen(session)
    except (NotSentError, BrokenError) as error:
        raise AwayError("RemoteUnreachable", f"no connection: {error}") from error
    if response.status != 200 or response.kind != EVENTS:
        outcome = refused or await exchanger.refusal(session, response)
        response.close()
        raise problem(outcome, initialize=True)
    session.transport, session.stream = SSE, response
    reader = _Reader(session, response, exchanger.limit, take)
    session.reading = asyncio.get_running_loop().create_task(reader.run())
    try:
        async with asyncio.timeout(ENDPOINT_SECONDS):
            location = await reader.endpoint
    except (TimeoutError, BrokenError) as error:
        session.close()
        text = f"its event stream does not begin with an endpoint: {error or 'nothing came'}"
        raise AwayError("RemoteRefused", text, initialize=True) from error
    try:
        session.path = exchanger.followed(session.path, location)
    except AwayError:
        session.close()
        raise


def _answered(event: eventstream.Event) -> int | None:
    """The id of the request that an event answers; None: it answers none."""
    if event.oversized is not None:
        return frames.answer_id(event.oversized.head, event.oversized.tail)
    return answered(event.data) if event.data else None


class _Reader:
    """Reads the stream of a session over SSE to its end."""

    def __init__(self, session: Session, response: Response, limit: int, take: TakeEvent) -> None:
        self._session = session
        self._response = response
        self._limit = limit
        self._take = take
        self.endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        why = "the stream of the session has ended"
        reader = eventstream.EventReader(self._limit, drop=True)
        try:
            async for chunk in self._response.chunks():
                for event in reader.feed(chunk):
                    self._event(event)
        except BrokenError as error:
            why += f": {error}"
        except Exception as error:  # noqa: BLE001 - the session must not go on without who reads it
            log.failure("remote_stream_failed", error)
            why += ": a defect of the relay"
        if not self.endpoint.done():
            self.endpoint.set_exception(BrokenError(why))
        self._session.report(AwayError("RemoteUnreachable", why))

    def _event(self, event: eventstream.Event) -> None:
        if event.kind == "endpoint":
            if not self.endpoint.done():
                self.endpoint.set_result(event.data.decode("utf-8", "replace").strip())
            return
        number = _answered(event)
        pong = self._session.pongs.get(number) if number is not None else None
        if pong is not None:
            if not pong.done():
                pong.set_result(event.data)
            return
        if number is not None:
            self._session.pending.discard(number)
        self._take(event, number)
