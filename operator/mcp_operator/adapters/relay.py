"""The relays: long-poll of their status, and the order to reconnect. Speaks plain HTTP by aiohttp."""

import socket
from dataclasses import dataclass
from typing import Any, Final, Self

import aiohttp
import pydantic

from mcp_operator.adapters import body
from mcp_operator.adapters.errors import KeysRefusedError, UnreachableError, UnreadableError
from mcp_relay_api import paths
from mcp_relay_api.status import RelayStatus

CONNECT_SECONDS: Final = 2.0
ANSWER_SECONDS: Final = 5.0
# A relay holds an unchanged answer back for as long as it is told to, with signs of life meanwhile; one that
# is silent for so much longer is asked once more, and hangs if that is not answered in time either.
OVERDUE_SECONDS: Final = 0.3
ALIVE_SECONDS: Final = 0.2
# Where there are so many relays that signs of life are rare, we are busy too, and they have more time.
OVERDUE_BEATS: Final = 0.25
ALIVE_BEATS: Final = 0.125
MAX_DOCUMENT: Final = 4 * 1024 * 1024
_SET_REFUSED: Final = frozenset({400, 413})

# A node or network that vanishes says nothing; the kernel asks instead, so that a poll ends within 5 s.
_KEEPALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 2),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)


@dataclass(frozen=True)
class Endpoint:
    """Where one relay's admin port is, and what opens it."""

    host: str
    token: str
    port: int = paths.ADMIN_PORT

    def url(self, path: str) -> str:
        """URL of a path at the admin port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{path}"

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every request."""
        return {"Authorization": f"Bearer {self.token}", "Accept-Encoding": "identity"}


class Relay:
    """The client of one relay, with a connection of its own."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._polls: aiohttp.ClientSession | None = None
        self._last: tuple[bytes, RelayStatus] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._polls is not None:
            await self._polls.close()

    async def status(self, known: RelayStatus | None, wait: float, beat: float) -> RelayStatus:
        """The relay's report: at once if not the known one, else when it changes or after `wait` seconds.

        Only inside `async with`. `beat`: seconds between signs of life until then; silence beyond that is not
        believed before a second question has stayed unanswered, since the silent one may have been we.

        Raises:
            UnreachableError: no answer, or a refusal.
            UnreadableError: an answer that is no report.

        """
        if self._polls is None:
            self._polls = _session(keep=True)
        if known is None:
            return await self._report(self._polls, ANSWER_SECONDS, {}, ANSWER_SECONDS)
        query = {
            "after": str(known.revision),
            "instance": known.instance,
            "wait": f"{wait:g}",
            "beat": f"{beat:g}",
        }
        overdue, alive = max(OVERDUE_SECONDS, beat * OVERDUE_BEATS), max(ALIVE_SECONDS, beat * ALIVE_BEATS)
        try:
            return await self._report(self._polls, wait + overdue, query, beat + overdue)
        except UnreachableError as error:
            if not error.silent:
                raise
            try:
                return await self._report(self._polls, alive, {}, alive)
            except UnreachableError:
                raise error from None

    async def _report(
        self, session: aiohttp.ClientSession, limit: float, query: dict[str, str], silence: float
    ) -> RelayStatus:
        content = (await self._send(session, "GET", paths.STATUS_PATH, limit, query, silence)).lstrip()
        if self._last is None or self._last[0] != content:
            self._last = content, _read(content)
        return self._last[1]

    async def reconnect(self) -> None:
        """Tell the relay to open its connection to the launcher anew.

        Raises:
            UnreachableError: no answer, or a refusal.

        """
        async with _session(keep=False) as session:
            await self._send(session, "POST", paths.RECONNECT_PATH, ANSWER_SECONDS, {})

    async def bring_keys(self, document: bytes) -> None:
        """Have the relay verify clients' tokens with the keys of this JWK Set.

        Raises:
            KeysRefusedError: this set is not taken.
            UnreachableError: no answer, or another refusal.

        """
        async with _session(keep=False) as session:
            try:
                await self._send(session, "POST", paths.KEYS_PATH, ANSWER_SECONDS, {}, content=document)
            except UnreachableError as error:
                if error.status not in _SET_REFUSED:
                    raise
                raise KeysRefusedError(str(error), status=error.status) from error

    async def _send(
        self,
        session: aiohttp.ClientSession,
        method: str,
        path: str,
        limit: float,
        query: dict[str, str],
        silence: float = ANSWER_SECONDS,
        content: bytes | None = None,
    ) -> bytes:
        """The body of a successful answer, the whole of which must be there within `limit` seconds.

        `silence`: seconds in which something of it must come.
        """
        url, headers = self.endpoint.url(path), self.endpoint.headers
        timeout = aiohttp.ClientTimeout(total=limit, sock_connect=CONNECT_SECONDS, sock_read=silence)
        try:
            async with session.request(
                method,
                url,
                params=query,
                headers=headers,
                data=content,
                timeout=timeout,
                allow_redirects=False,
            ) as answer:
                if not 200 <= answer.status < 300:
                    raise UnreachableError(f"HTTP {answer.status}", status=answer.status)
                return await _content(answer)
        except TimeoutError as error:
            seconds = min(limit, silence)
            raise UnreachableError(f"no sign of life for {seconds:g} s", silent=True) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise UnreachableError(str(error) or type(error).__name__) from error


def _session(*, keep: bool) -> aiohttp.ClientSession:
    def connected(address: Any) -> socket.socket:
        family, kind, protocol, _, _ = address
        made = socket.socket(family, kind, protocol)
        for level, option, value in _KEEPALIVE:
            made.setsockopt(level, option, value)
        return made

    connector = aiohttp.TCPConnector(
        limit=2, keepalive_timeout=90 if keep else None, force_close=not keep, socket_factory=connected
    )
    return aiohttp.ClientSession(
        connector=connector, auto_decompress=False, trust_env=False, cookie_jar=aiohttp.DummyCookieJar()
    )


async def _content(answer: aiohttp.ClientResponse) -> bytes:
    """The body: whoever listens there may send without end."""
    found = await body.bounded(answer, MAX_DOCUMENT)
    if found is None:
        raise UnreadableError(f"it has more than {MAX_DOCUMENT} bytes")
    return found


def _read(content: bytes) -> RelayStatus:
    try:
        return RelayStatus.model_validate_json(content)
    except pydantic.ValidationError as error:
        raise UnreadableError(_first(error)) from error


def _first(error: pydantic.ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in found["loc"])
    return f"{where}: {found['msg']}" if where else found["msg"]
