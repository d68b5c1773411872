"""The relay's one session with the server process: its states and every way between them.

All that moves the state stands in `TRANSITIONS`. An input that is not listed for a state raises and changes
nothing; inputs that may come at any time are listed for every state.
"""

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """The states of the contract's `RelayState` (a test holds them together)."""

    CONNECTING = "Connecting"
    CONNECTED = "Connected"
    DROPPED = "Dropped"
    REFUSED = "Refused"
    EXITED = "Exited"
    TERMINATING = "Terminating"


class Input(StrEnum):
    """What can happen to the session."""

    STARTED = "started"
    """The launcher introduced a process not seen before: the handshake begins."""
    RESUMED = "resumed"
    """The launcher introduced the process whose handshake is still under way."""
    READY = "ready"
    """The handshake is done, or the running session was adopted."""
    REFUSED = "refused"
    """The server answered the handshake with an error or with nothing usable."""
    LOST = "lost"
    """The connection to the launcher broke, or the server closed its output."""
    EXITED = "exited"
    """The launcher reported the end of the process."""
    TERMINATING = "terminating"
    """The pod, or this relay, is being stopped."""


class IllegalInputError(Exception):
    """An input that cannot happen in the current state."""


_S, _I = State, Input
TRANSITIONS: Final[dict[tuple[State, Input], State]] = {
    (_S.CONNECTING, _I.STARTED): _S.CONNECTING,
    (_S.CONNECTING, _I.RESUMED): _S.CONNECTING,
    (_S.CONNECTING, _I.READY): _S.CONNECTED,
    (_S.CONNECTING, _I.REFUSED): _S.REFUSED,
    (_S.CONNECTING, _I.LOST): _S.DROPPED,
    (_S.CONNECTED, _I.LOST): _S.DROPPED,
    (_S.DROPPED, _I.STARTED): _S.CONNECTING,
    (_S.DROPPED, _I.RESUMED): _S.CONNECTING,
    (_S.DROPPED, _I.READY): _S.CONNECTED,
    (_S.DROPPED, _I.LOST): _S.DROPPED,
    (_S.REFUSED, _I.STARTED): _S.CONNECTING,
    (_S.REFUSED, _I.LOST): _S.REFUSED,
    (_S.EXITED, _I.STARTED): _S.CONNECTING,
    (_S.EXITED, _I.LOST): _S.EXITED,
    # Once terminating, always terminating: what still happens to the process no longer matters.
    **{(_S.TERMINATING, happened): _S.TERMINATING for happened in Input},
    **{(state, _I.EXITED): _S.EXITED for state in State if state is not _S.TERMINATING},
    **{(state, _I.TERMINATING): _S.TERMINATING for state in State},
}


class Machine:
    """Holds the current state; `feed` is the only way to change it."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = State.CONNECTING

    def feed(self, happened: Input) -> bool:
        """Apply an input; True when the state changed.

        Raises:
            IllegalInputError: the input cannot happen now; nothing was changed.

        """
        target = TRANSITIONS.get((self.state, happened))
        if target is None:
            raise IllegalInputError(f"{happened.value} while {self.state.value}")
        changed = target is not self.state
        self.state = target
        return changed
