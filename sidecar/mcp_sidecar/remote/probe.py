"""Signs of life of a session with a remote server."""

from mcp_sidecar.core.fate import Fate
from mcp_sidecar.core.lines import Line
from mcp_sidecar.remote.exchange import Exchanger
from mcp_sidecar.remote.outcome import Outcome, problem
from mcp_sidecar.remote.reply import Take, answered
from mcp_sidecar.remote.session import GoneError, Session

_PLAIN = frozenset({Fate.REFUSED, Fate.REDIRECT, Fate.UNKNOWN})


class Prober:
    """Asks for signs of life; `take` gets what else the server sends."""

    def __init__(self, exchanger: Exchanger, take: Take) -> None:
        self._exchanger = exchanger
        self._take = take
        self._number = 0
        self._strange = False
        """Whether the last answer was none of an MCP server."""

    async def __call__(self, session: Session) -> None:
        """Ask for a sign of life in the session.

        Raises:
            AwayError, GoneError: there is none.

        """
        self._number += 1
        number = self._number

        def take(data: Line) -> None:
            if answered(data) != number:
                self._take(data)

        outcome = await self._exchanger.probe(session, number, take)
        if outcome.fate in {Fate.RENEW, Fate.LOST}:
            raise GoneError(outcome.text)
        if outcome.status >= 500 or outcome.fate is Fate.DENIED:
            raise problem(outcome, initialize=False)
        self._weigh(outcome)

    def _weigh(self, outcome: Outcome) -> None:
        """What is no JSON-RPC (a page of a proxy, say) means that the server is not there any more.

        A handshake tells. Where that one succeeds and the answer remains, the server just knows no `ping`.
        """
        strange, self._strange = self._strange, outcome.fate in _PLAIN and not outcome.body
        if self._strange and not strange:
            raise GoneError(f"no MCP server answers ({outcome.text})")
