"""What became of a message to a remote server, and the problem that makes of it."""

import json
from dataclasses import dataclass

from mcp_sidecar.core import jsontext
from mcp_sidecar.core.fate import Fate, Said
from mcp_sidecar.remote.mask import Mask
from mcp_sidecar.remote.session import AwayError, DeniedError

_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a message. `text` is for people; `body` the answer that was not handed on."""

    fate: Fate
    status: int = 200
    text: str = ""
    body: bytes = b""
    after: float | None = None
    """Seconds that the server asks to wait."""


def unusable(text: str, status: int) -> Outcome:
    """What the server answered makes no sense."""
    return Outcome(Fate.UNKNOWN, status, text)


def told(status: int, said: Said | None, body: bytes, mask: Mask) -> str:
    """What the server answered, for people; masked before it is cut, which could leave half a secret."""
    words = said.message if said is not None else _words(body)
    seen = "".join(character if character.isprintable() else " " for character in mask(words))
    line = " ".join(seen.split())[:_SHOWN]
    return f"HTTP {status}" + (f": {line}" if line and not line.startswith("<") else "")


def _words(body: bytes) -> str:
    """A body for people; JSON without escapes, behind which a secret would not be found."""
    try:
        plain = json.dumps(jsontext.loads(body), ensure_ascii=False)
    except jsontext.JsonError:
        return body.decode("utf-8", "replace")
    return plain.encode("utf-8", "replace").decode()


def problem(outcome: Outcome, *, initialize: bool) -> AwayError:
    """Why a server cannot be used that answered in this way."""
    if outcome.fate is Fate.DENIED:
        return denied(outcome)
    if outcome.fate is Fate.FALL_BACK:
        text = f"neither Streamable HTTP nor SSE is spoken there ({outcome.text}): correct spec.remote.url"
        return AwayError("RemoteRefused", text, initialize=initialize)
    if outcome.fate in {Fate.LATER, Fate.UNKNOWN}:
        return AwayError("RemoteUnavailable", outcome.text, outcome.after, initialize=initialize)
    if outcome.fate in {Fate.RENEW, Fate.LOST}:
        return AwayError("SessionLost", outcome.text, initialize=initialize)
    return DeniedError("RemoteRefused", outcome.text, initialize=initialize)


def denied(outcome: Outcome) -> DeniedError:
    """The problem of a server that the headers do not open."""
    text = f"the server refuses access ({outcome.text}): correct what spec.remote.headersFrom names"
    return DeniedError("RemoteDenied", text)
