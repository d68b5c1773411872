"""How a slow start gets on: the launcher is asked now and then for what the server wrote to stderr last."""

import asyncio
from collections.abc import Callable
from typing import Any

from mcp_sidecar.core import control

FIRST_SECONDS = 1.0
EVERY_SECONDS = 5.0
"""Each answer that is new makes a revision of the status, and so a write to the API server."""


class Progress:
    """Asks from `begin` to `end`; `ask` sends the launcher a message, `told` takes each answer."""

    def __init__(self, ask: Callable[[dict[str, Any]], bool], told: Callable[[str], None]) -> None:
        self._ask = ask
        self._told = told
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """A process has been started, and nothing is known of it but what it writes."""
        self.end()
        self._later(FIRST_SECONDS)

    def end(self) -> None:
        """It can be used, or never will be."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def answered(self, message: dict[str, Any]) -> None:
        """Take the launcher's answer."""
        if self._timer is not None:
            self._told(control.progress(message))

    def _later(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._due)

    def _due(self) -> None:
        self._ask({"event": "progress"})  # without a connection there is no answer: the next time, maybe
        self._later(EVERY_SECONDS)
