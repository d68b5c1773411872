"""What a remote server sends by itself, and the signs of life of a session."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from mcp_sidecar import log
from mcp_sidecar.core import eventstream
from mcp_sidecar.core.fate import Fate
from mcp_sidecar.core.target import SSE
from mcp_sidecar.remote.client import BrokenError, NotSentError, Response
from mcp_sidecar.remote.exchange import EVENTS, MAX_RETRY_SECONDS, Exchanger, Take, answered
from mcp_sidecar.remote.outcome import Outcome, problem
from mcp_sidecar.remote.session import AwayError, DeniedError, GoneError, Session

PING_SECONDS = 30.0
ENDPOINT_SECONDS = 10.0
AGAIN_SECONDS = 1.0
# After a stream that lasted longer than that: its end may be the server's.
AT_ONCE_SECONDS = 0.05
Probe = Callable[[Session], Awaitable[None]]


async def watch(session: Session, exchanger: Exchanger, probe: Probe, take: Take) -> None:
    """Take what the server sends by itself, until the session is in trouble.

    Raises:
        AwayError, GoneError, DoubtError: what the trouble is.

    """
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(_ping(session, probe))]
    if session.transport == SSE:
        pass  # its reader was started with it
    elif not session.modern:
        tasks.append(loop.create_task(_listen(session, exchanger, probe, take)))
    try:
        waiting: set[asyncio.Future[object]] = {session.trouble, *tasks}  # type: ignore[arg-type]
        while True:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                if one is session.trouble:
                    raise session.trouble.result()
                one.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _ping(session: Session, probe: Probe) -> None:
    while True:
        await asyncio.sleep(PING_SECONDS)
        await probe(session)


async def _listen(session: Session, exchanger: Exchanger, probe: Probe, take: Take) -> None:
    """Keep the stream open, if the server offers one; ends when it does not."""
    last_id: str | None = None
    while session.streaming:
        try:
            response = await _opened(session, exchanger, last_id)
        except DeniedError:
            await probe(session)  # the stream alone is refused, or everything: that tells
            response = None
        if response is None:
            session.streaming = False
            return
        reader, began = eventstream.EventReader(exchanger.limit), time.monotonic()
        try:
            async for chunk in response.chunks():
                for event in reader.feed(chunk):
                    if event.data:
                        take(event.data)
        except (BrokenError, eventstream.EventTooLargeError):
            pass  # opened again, which tells whether the server is there
        finally:
            response.close()
        last_id = reader.last_id or last_id
        brief = time.monotonic() - began < AGAIN_SECONDS
        least = AGAIN_SECONDS if brief else AT_ONCE_SECONDS
        await asyncio.sleep(min(max(reader.retry or 0.0, least), MAX_RETRY_SECONDS))


async def _opened(session: Session, exchanger: Exchanger, last_id: str | None) -> Response | None:
    """The stream; None: there is none, which the first refusal tells."""
    try:
        response = await exchanger.listen(session, last_id)
    except (NotSentError, BrokenError) as error:
        raise AwayError("RemoteUnreachable", f"no connection: {error}") from error
    if response.status == 200 and response.kind == EVENTS:
        session.streamed = True
        return response
    outcome = await exchanger.refusal(session, response)
    if outcome.status >= 500 or outcome.status == 401:
        raise problem(outcome, initialize=False)
    if session.streamed and outcome.fate is Fate.RENEW:
        raise GoneError(outcome.text)
    return None


async def fall_back(session: Session, exchanger: Exchanger, take: Take, refused: Outcome | None) -> None:
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


class _Reader:
    """Reads the stream of a session over SSE to its end."""

    def __init__(self, session: Session, response: Response, limit: int, take: Take) -> None:
        self._session = session
        self._response = response
        self._limit = limit
        self._take = take
        self.endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        why = "the stream of the session has ended"
        reader = eventstream.EventReader(self._limit)
        try:
            async for chunk in self._response.chunks():
                for event in reader.feed(chunk):
                    self._event(event)
        except (BrokenError, eventstream.EventTooLargeError) as error:
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
        elif event.data:
            number = answered(event.data)
            pong = self._session.pongs.get(number) if number is not None else None
            if pong is not None:
                if not pong.done():
                    pong.set_result(event.data)
                return
            if number is not None:
                self._session.pending.discard(number)
            self._take(event.data)
