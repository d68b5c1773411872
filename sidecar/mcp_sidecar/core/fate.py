"""What the answer to a POST means for the request, and for the session: the client's side of the transport.

A request is sent twice only where it is sure that it was not worked on: the server said that it knows no such
session, or that it takes nothing now. Sources: the Streamable HTTP transport of the specification, and the
spellings of a lost session that servers in the field use.
"""

import email.utils
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from mcp_sidecar.core import frames, jsontext
from mcp_sidecar.core.lines import Line


class Fate(Enum):
    """What is to be done."""

    ANSWER = "answer"
    """It is an answer: the caller gets what it says."""
    RENEW = "renew"
    """The session is gone, the request was not worked on: a new session, then once again."""
    LOST = "lost"
    """The session is gone, and what became of the request is not known: a new session, nothing again."""
    DOUBTED = "doubted"
    """The caller gets what it says, which may mean that the session is gone: it is to be looked at."""
    LATER = "later"
    """Not now: again on the same session, after a while."""
    REDIRECT = "redirect"
    """The server is elsewhere."""
    FALL_BACK = "fall-back"
    """Nothing that speaks Streamable HTTP is there: it may be a server of revision 2024-11-05."""
    DENIED = "denied"
    """The headers do not open the server: nothing will, until they change."""
    UNKNOWN = "unknown"
    """It failed, and what became of it is not known."""
    REFUSED = "refused"
    """It was not taken, and will not be."""


@dataclass(frozen=True, slots=True)
class Said:
    """The error of a JSON-RPC answer."""

    code: Any
    message: str


REDIRECTS = frozenset({301, 302, 307, 308})
"""Statuses whose Location is followed on the same server, with the same method."""
_SESSION_CODES = frozenset({-32000, -32001})
# "Session not found", "session terminated", "Session has expired", "No valid session ID provided", and "Bad
# Request: Server not initialized" of a TypeScript server that was restarted.
_SESSION_LOST = re.compile(
    r"session\b.{0,40}\b(not found|unknown|terminated|expired|closed|does not exist|no longer exists|invalid)"
    r"|(unknown|invalid|no valid|no such|expired)\b.{0,20}\bsession|server not initialized",
    re.IGNORECASE,
)
# These words and no others: whoever says only this says it of the session.
_BARE = re.compile(
    r"(session (has |was )?(been )?(not found|unknown|terminated|expired|closed)|(unknown|no such) session"
    r"|no valid session id provided|server not initialized)\W*(please re-?initiali[sz]e\W*)?",
    re.IGNORECASE,
)
_CONNECTION_CLOSED = re.compile(r"connection closed", re.IGNORECASE)


def judge(status: int, method: str, said: Said | None, *, in_session: bool, handshake: bool) -> Fate:
    """What the answer to a POST means.

    Args:
        status: HTTP status.
        method: method of the frame that was sent.
        said: the JSON-RPC error in the body, if there is one.
        in_session: whether the request named a session.
        handshake: whether it began one.

    """
    if status < 300:
        return _answered(method, said) if in_session else Fate.ANSWER
    if status < 400:
        return Fate.REDIRECT if status in REDIRECTS else Fate.REFUSED
    if handshake and status in {400, 404, 405}:
        return Fate.FALL_BACK if said is None else Fate.ANSWER
    if status == 401 or (handshake and status == 403):
        return Fate.DENIED
    if in_session and _session_gone(status, said):
        return Fate.RENEW
    return _failed(status, method)


def _answered(method: str, said: Said | None) -> Fate:
    if said is None or said.code not in _SESSION_CODES:
        return Fate.ANSWER
    if _BARE.fullmatch(said.message):
        return Fate.RENEW
    if method == "tools/call":  # the words of a tool that has worked, perhaps: "browser session 17 not found"
        lost = _SESSION_LOST.search(said.message) or _CONNECTION_CLOSED.search(said.message)
        return Fate.DOUBTED if lost else Fate.ANSWER
    if _SESSION_LOST.search(said.message):
        return Fate.RENEW
    return Fate.LOST if _CONNECTION_CLOSED.search(said.message) else Fate.ANSWER


def _session_gone(status: int, said: Said | None) -> bool:
    if status == 404:
        return True
    if said is None or status >= 500:
        return False
    return bool(_SESSION_LOST.search(said.message) or _CONNECTION_CLOSED.search(said.message))


def _failed(status: int, method: str) -> Fate:
    if status in {429, 503}:
        return Fate.LATER
    if status >= 500:  # it may have come as far as the tool
        return Fate.UNKNOWN if method == "tools/call" else Fate.LATER
    return Fate.REFUSED


def error_of(body: Line) -> Said | None:
    """The JSON-RPC error that a body holds; None for everything else."""
    if len(body) > frames.TRUSTED_BYTES:
        return None
    try:
        message = jsontext.loads(bytes(body))
    except jsontext.JsonError:
        return None
    error = message.get("error") if isinstance(message, Mapping) else None
    if not isinstance(error, Mapping) or message.get("jsonrpc") != "2.0":
        return None
    return Said(error.get("code"), str(error.get("message")))


def retry_after(value: str, now: float) -> float | None:
    """Seconds that a Retry-After header asks for; None: it says nothing of use. `now` is Unix time."""
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        moment = email.utils.parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):  # no date, or none that a calendar has
        return None
    return max(0.0, moment - now)
