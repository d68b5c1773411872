"""One message to a remote server, and everything that comes back for it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from mcp_sidecar.core import eventstream, fate, frames
from mcp_sidecar.core.fate import Fate
from mcp_sidecar.core.handshake import CLIENT_INFO
from mcp_sidecar.core.modern import headers as modern
from mcp_sidecar.core.modern.envelope import NAMED, of
from mcp_sidecar.core.modern.headers import Param
from mcp_sidecar.core.opening import DISCOVER
from mcp_sidecar.core.target import SSE, Target, TargetError, elsewhere, printable
from mcp_sidecar.remote.client import BrokenError, Client, NotSentError, Response, TooLargeError
from mcp_sidecar.remote.mask import Secrets
from mcp_sidecar.remote.outcome import Outcome, told, unusable
from mcp_sidecar.remote.reply import Reply, Take, answered, line, read, readdressed
from mcp_sidecar.remote.session import AwayError, DeniedError, Session

CALL = "tools/call"
JSON, EVENTS = "application/json", "text/event-stream"
PROBE_SECONDS = 30.0
MAX_REDIRECTS = 5
MAX_ERROR_BYTES = 65_536
ERROR_SECONDS = 5.0
"""For the body of a refusal, of which the status says enough."""
MAX_RESUMES = 5
"""In a row without a new event."""
RESUME_SECONDS = 0.1
"""At least, between two resumes of one stream."""
MAX_RETRY_SECONDS = 10.0
"""Of what a server may ask to wait before its stream is opened again."""
_KIND_SHOWN = 80
FindParams = Callable[[str], tuple[Param, ...]]
"""Finds the arguments of a tool that headers repeat."""
_NOTHING = frames.Frame(frames.NOTIFICATION, b"", "", None, {}, 0, 0)


class Exchanger:
    """Sends messages to `target`, the values of whose headers stand in `files`."""

    def __init__(self, target: Target, client: Client, files: Path, limit: int, params: FindParams) -> None:
        self.target = target
        self.client = client
        self.limit = limit
        self._files = files
        self._params = params
        self._secrets = Secrets()
        self._secrets.path("url", target.path)

    def own_headers(self) -> dict[str, str]:
        """The headers from Secrets, read anew each time: a value may have been changed.

        Raises:
            DeniedError: one cannot be read, or is none that a header can have.

        """
        found = {}
        for header in self.target.headers:
            try:
                value = (self._files / header.file).read_text("utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                text = f"the value of header {header.name} cannot be read: {type(error).__name__}"
                raise DeniedError("RemoteDenied", text) from error
            if not printable(value):
                text = f"the value of header {header.name} has characters that a header cannot have"
                raise DeniedError("RemoteDenied", text)
            self._secrets.value(f"header {header.file}", value, header.prefix)
            found[header.name] = header.prefix + value
        return found

    def masked(self, text: str) -> str:
        """A text of the server without values of headers, URL and session: it may have repeated them."""
        return self._secrets.masked(text)

    async def ask(
        self, session: Session, frame: frames.Frame, take: Take, *, handshake: bool = False
    ) -> Outcome:
        """Post a frame and take what comes back, the answer last.

        Raises:
            NotSentError: the server has not heard of it.
            BrokenError: it may have.
            DeniedError: the headers cannot be made.

        """
        response = await self._post(session, frame)
        try:
            if response.status >= 300:
                return await self._refused(session, frame, response, take, handshake=handshake)
            if handshake and session.transport != SSE:
                session.sid = response.headers.get("mcp-session-id", "")
                self._secrets.value("session", session.sid)
            return await self._answered(session, frame, response, take)
        finally:
            response.close()

    async def _post(self, session: Session, frame: frames.Frame) -> Response:
        headers = {
            **self.own_headers(),
            "Content-Type": JSON,
            "Accept": f"{JSON}, {EVENTS}",
            **session.headers(),
            **self._repeated(session, frame),
        }
        self._secrets.value("session", session.sid)
        return await self._redirected(
            session.path,
            lambda path: self.client.request(
                "POST", path, headers, frame.data, repeatable=frame.method != CALL
            ),
        )

    async def _redirected(self, path: str, send: Callable[[str], Awaitable[Response]]) -> Response:
        """Send a request to a path, and then to where redirects lead."""
        for _ in range(MAX_REDIRECTS):
            response = await send(path)
            location = response.headers.get("location")
            if response.status not in fate.REDIRECTS or location is None:
                return response
            response.close()
            path = self.followed(path, location)
        raise DeniedError("RemoteRefused", f"the server redirects more than {MAX_REDIRECTS} times")

    def followed(self, path: str, location: str) -> str:
        """Where a redirect leads on the same server.

        Raises:
            DeniedError: to another one, which must not see the headers.

        """
        try:
            origin, found = elsewhere(self.target.origin, path, location)
        except TargetError as error:
            raise DeniedError("RemoteRefused", f"the server redirects to nowhere: {error}") from error
        if origin != self.target.origin:
            text = (
                f"the server redirects to {origin}, which is not followed, because the headers are not for "
                "it: write the right URL into spec.remote.url"
            )
            raise DeniedError("RemoteRefused", text)
        self._secrets.path("place", found)
        return found

    def _repeated(self, session: Session, frame: frames.Frame) -> dict[str, str]:
        """What a request without session repeats of its body."""
        if not session.modern or not frame.method:
            return {}
        headers = {"Mcp-Method": modern.encoded(frame.method)}
        named = frame.params.get(NAMED.get(frame.method, ""))
        if isinstance(named, str):
            headers["Mcp-Name"] = modern.encoded(named)
        if frame.method == CALL:
            headers |= modern.given(self._params(str(named)), frame.params.get("arguments"))
        return headers

    async def _answered(
        self, session: Session, frame: frames.Frame, response: Response, take: Take
    ) -> Outcome:
        number = frames.own_id(frame.id) if frame.kind is frames.REQUEST else None
        if number is None or session.transport == SSE or response.status == 202:
            return Outcome(Fate.ANSWER, response.status)
        if response.coding:
            text = f"its answer is encoded ({response.coding[:_KIND_SHOWN]!r}), which was not asked for"
            return unusable(text, response.status)
        reply = Reply(session, frame.method, number, take, self._secrets)
        if response.kind == EVENTS:
            return await self._streamed(session, reply, response)
        try:
            data = line(await response.body(self.limit))
        except TooLargeError as error:
            return unusable(f"its answer has {error}", response.status)
        if answered(data) != number and fate.error_of(data) is not None:
            data = readdressed(bytes(data), frame.raw_id, self._secrets)
        reply.message(data)
        kind = response.kind[:_KIND_SHOWN] or "unknown"
        text = f"its answer of type {kind!r} is no JSON-RPC answer to the request"
        return reply.outcome or unusable(text, response.status)

    async def _streamed(self, session: Session, reply: Reply, response: Response) -> Outcome:
        """Read the stream of a call; where it breaks off it is taken up again, if the server offers that."""
        reader = eventstream.EventReader(self.limit)
        fruitless, last_id, wait = 0, None, 0.0
        while fruitless < MAX_RESUMES:
            try:
                if await read(response, reader, reply):
                    return reply.outcome or unusable("its stream ended", response.status)
            except eventstream.EventTooLargeError as error:
                return unusable(f"its answer has {error}", response.status)
            fruitless = fruitless + 1 if reader.last_id == last_id else 0
            last_id = reader.last_id
            await asyncio.sleep(min(max(reader.retry or 0.0, wait), MAX_RETRY_SECONDS))
            wait = RESUME_SECONDS
            response = await self._resumed(session, last_id)
            reader.again()
            if response.status != 200 or response.kind != EVENTS:
                response.close()
                break
        raise BrokenError("its stream ended before the answer")

    async def _resumed(self, session: Session, last_id: str | None) -> Response:
        """The stream again, which a server that is busy is asked for ever later: it has the call."""
        step = RESUME_SECONDS
        for left in reversed(range(MAX_RESUMES)):
            try:
                response = await self.listen(session, last_id)
            except (NotSentError, DeniedError) as error:  # of this request: the server has the call
                text = f"its stream ended before the answer, and is not to be had: {error}"
                raise BrokenError(text) from error
            found = fate.judge(response.status, "", None, in_session=session.named, handshake=False)
            if not left or found is not Fate.LATER:
                break
            response.close()
            after = _after(response)
            await asyncio.sleep(min(max(step, after or 0.0), MAX_RETRY_SECONDS))
            step *= 2
        return response

    async def listen(self, session: Session, last_id: str | None = None) -> Response:
        """Open a stream of what the server sends by itself, or what followed an event.

        Raises:
            NotSentError, BrokenError, DeniedError: as `ask`.

        """
        headers = {**self.own_headers(), "Accept": EVENTS, **session.headers()}
        if last_id is not None:
            headers["Last-Event-ID"] = last_id.encode().decode("latin-1")  # UTF-8, by the HTML standard
        return await self._redirected(session.path, lambda path: self.client.request("GET", path, headers))

    async def end(self, session: Session) -> None:
        """Tell the server that the session is over; what it says to that does not matter."""
        response = await self.client.request(
            "DELETE", session.path, {**self.own_headers(), **session.headers()}
        )
        response.close()

    async def refusal(self, session: Session, response: Response) -> Outcome:
        """What an answer means to the wish for a stream."""
        return await self._refused(session, _NOTHING, response, lambda _data: None, handshake=False)

    async def probe(self, session: Session, number: int, take: Take) -> Outcome:
        """Ask for a sign of life, under an id of its own.

        Raises:
            AwayError: there is none.

        """
        method, params = (DISCOVER, {"_meta": of({}, CLIENT_INFO)}) if session.modern else ("ping", {})
        frame = frames.parse(frames.request(number, method, params))
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                if session.transport == SSE:
                    return await self._over_sse(session, frame, number, take)
                return await self.ask(session, frame, take)
        except TimeoutError as error:
            text = f"no answer to {method} within {PROBE_SECONDS:g} seconds"
            raise AwayError("RemoteUnreachable", text) from error
        except (NotSentError, BrokenError) as error:
            raise AwayError("RemoteUnreachable", f"no connection: {error}") from error

    async def _over_sse(self, session: Session, frame: frames.Frame, number: int, take: Take) -> Outcome:
        """Ask where the answer comes by the session's stream, of which a 202 says nothing."""
        pong = session.pongs[number] = asyncio.get_running_loop().create_future()
        try:
            outcome = await self.ask(session, frame, take)
            if outcome.fate is not Fate.ANSWER:
                return outcome
            ends = () if session.reading is None else (session.reading,)
            await asyncio.wait([pong, *ends], return_when=asyncio.FIRST_COMPLETED)
            if not pong.done():
                raise BrokenError("the stream of the session has ended")
            reply = Reply(session, frame.method, number, take, self._secrets)
            reply.message(pong.result())
            return reply.outcome or outcome
        finally:
            del session.pongs[number]

    async def _refused(
        self, session: Session, frame: frames.Frame, response: Response, take: Take, *, handshake: bool
    ) -> Outcome:
        body = await _refusal(response)
        said = fate.error_of(body)
        answer = b"" if said is None else readdressed(body, frame.raw_id, self._secrets)
        found = fate.judge(response.status, frame.method, said, in_session=session.named, handshake=handshake)
        if found is Fate.ANSWER:
            take(answer)
        after = _after(response)
        return Outcome(found, response.status, told(response.status, said, body, self.masked), answer, after)


def _after(response: Response) -> float | None:
    """Seconds that the server asks to wait."""
    return fate.retry_after(response.headers.get("retry-after", ""), time.time())


async def _refusal(response: Response) -> bytes:
    """The body of a refusal, as far as it is of use."""
    try:
        async with asyncio.timeout(ERROR_SECONDS):
            body = bytes(await response.body(MAX_ERROR_BYTES))
    except (BrokenError, TooLargeError, TimeoutError):
        return b""  # the status alone says enough
    finally:
        response.close()
    return b"" if response.coding else body
