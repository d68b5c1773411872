"""The messages that come back for one request to a remote server, until its answer."""

from collections.abc import Callable, Mapping
from typing import Any

from mcp_sidecar.core import eventstream, fate, frames, jsontext
from mcp_sidecar.core.fate import Fate, Said
from mcp_sidecar.core.lines import COPIED_BYTES, Line
from mcp_sidecar.remote.client import BrokenError, Response
from mcp_sidecar.remote.mask import Secrets
from mcp_sidecar.remote.outcome import Outcome
from mcp_sidecar.remote.session import Session

Take = Callable[[Line], None]
"""Takes one message of the server."""


class Reply:
    """Hands on what comes for the request of that number; the first answer counts."""

    def __init__(self, session: Session, method: str, number: int, take: Take, secrets: Secrets) -> None:
        self._session = session
        self._method = method
        self._number = number
        self._take = take
        self._secrets = secrets
        self.outcome: Outcome | None = None

    def message(self, data: Line) -> None:
        """Hand on a message, unless it says that the session is gone."""
        if answered(data) != self._number:
            if data:  # the first event of a stream that can be taken up again has none
                self._take(data)
            return
        if self.outcome is not None:  # answered twice: what a second answer says of the session says nothing
            return
        said = fate.error_of(data)
        found = fate.judge(200, self._method, said, in_session=self._session.named, handshake=False)
        if said is not None:
            data = readdressed(bytes(data), b"%d" % self._number, self._secrets)
        if found in {Fate.ANSWER, Fate.DOUBTED}:
            self._take(data)
        self.outcome = Outcome(found, 200, *self._kept(said, data))

    def _kept(self, said: Said | None, data: Line) -> tuple[str, bytes]:
        return ("", b"") if said is None else (self._secrets.masked(said.message), bytes(data))


async def read(response: Response, reader: eventstream.EventReader, reply: Reply) -> bool:
    """Read a stream up to the answer; False: it ended before that, and can be taken up again.

    Raises:
        BrokenError: it cannot.

    """
    try:
        async for chunk in response.chunks():
            for event in reader.feed(chunk):
                reply.message(event.data)
            if reply.outcome is not None:
                return True
    except BrokenError:
        if not reader.last_id:
            raise
    finally:
        response.close()
    if not reader.last_id:
        raise BrokenError("its stream ended before the answer")
    return False


def answered(data: Line) -> int | None:
    """The id of the request that a message answers; None: it answers none."""
    if len(data) > frames.TRUSTED_BYTES:
        big = frames.big_answer(data)
        return None if big is None else big.id
    try:
        message = jsontext.loads(bytes(data))
    except jsontext.JsonError:
        return None
    if not isinstance(message, Mapping) or "method" in message:
        return None
    return frames.own_id(message.get("id"))


def line(body: bytearray) -> Line:
    """A body on one line, a large one without another copy."""
    if 10 in body or 13 in body:
        return jsontext.one_line(bytes(body))
    return bytes(body) if len(body) <= COPIED_BYTES else memoryview(body)


def readdressed(body: bytes, raw_id: bytes, secrets: Secrets) -> bytes:
    """An error answer under the id of the request: some servers refuse without having looked for it.

    It passes as it was written, unless it repeats what is secret.
    """
    said: Any = jsontext.loads(body)["error"]
    shown = secrets.within(said)
    if shown != said:
        return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (raw_id, jsontext.dumps(shown))
    start, end = jsontext.byte_span(body, "error")
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (raw_id, body[start:end])
