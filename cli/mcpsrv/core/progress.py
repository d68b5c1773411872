"""The phases that an MCPServer goes through while somebody waits, each with the time it took."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcpsrv.core import state


@dataclass(frozen=True)
class Step:
    """A phase with its reason. `at` and `seconds` count from the start of waiting; the last one is open."""

    phase: str
    reason: str
    message: str
    at: float
    seconds: float | None = None


@dataclass(frozen=True)
class Timeline:
    """Steps so far, oldest first."""

    steps: tuple[Step, ...] = ()

    def seen(self, server: Mapping[str, Any], at: float) -> "Timeline":
        """With what the server shows at this time; itself when phase and reason are the same as before."""
        now = state.situation(server)
        last = self.steps[-1] if self.steps else None
        if last and (last.phase, last.reason) == (now.phase, now.reason):
            return self
        return Timeline((*self.ended(at).steps, Step(now.phase, now.reason, now.message, at)))

    def ended(self, at: float) -> "Timeline":
        """With the last step closed."""
        if not self.steps or self.steps[-1].seconds is not None:
            return self
        last = self.steps[-1]
        closed = Step(last.phase, last.reason, last.message, last.at, max(0.0, at - last.at))
        return Timeline((*self.steps[:-1], closed))
