"""Relay, server and clients together, moved by one small step after the other."""

import asyncio
import logging
from pathlib import Path
from typing import NamedTuple

from mcp_sidecar.session.relay import Relay
from mcp_sidecar.settings import Settings
from mcp_sidecar.web.connection import Site
from mcp_sidecar.web.endpoint import Endpoint
from simkit.clients import ClientSteps
from simkit.clock import Loop, moment
from simkit.model import Model
from simkit.server import ServerSteps
from simkit.verdict import check

PAUSES = (0.013, 0.6, 1.7, 4.9, 9.1, 15.3, 31.1, 62.7)
END_SECONDS = 200.0
# Steps at a stream, whose last events must have arrived, and steps whose effect comes in a task.
_CALM_BEFORE = ("listen", "delete", "hang_up", "terminate")
_CALM_AFTER = ("listen", "delete", "terminate", "reconnect")


class Step(NamedTuple):
    """What happens; `a` and `b` choose among what there is. Without `settle` the next step comes at once."""

    what: str
    a: int
    b: int
    settle: bool


class Errors(logging.Handler):
    """Keeps what the relay logs as a defect of its own."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(logging.Formatter().format(record))


class World:
    """Plays steps. After each the model knows what must come of it; in the end everything is held to it."""

    def __init__(self, loop: Loop, directory: Path, call_timeout: float) -> None:
        self._loop = loop
        self._settings = Settings(
            server_name="demo", server_uid="uid", signing_key=b"k" * 32, token=None, admin_token=b"a",
            socket_path="-", state_dir=directory, call_timeout=call_timeout,
            client_capabilities=("sampling", "elicitation", "roots"),
        )  # fmt: skip
        self.model = Model(loop.time, call_timeout)
        self.server = ServerSteps(loop, self.model)
        self.clients = ClientSteps(loop, self.model)
        self.started = 0

    async def play(self, steps: list[Step]) -> None:
        """From a running server with two clients to the end of everything."""
        errors = Errors()
        logging.getLogger("mcp_sidecar").addHandler(errors)
        try:
            await self.begin()
            for step in steps:
                await self._take(step)
            await self._finish()
        finally:
            logging.getLogger("mcp_sidecar").removeHandler(errors)
        assert errors.seen == []
        for failure in self._loop.failures:
            raise failure.get("exception") or AssertionError(failure["message"])

    async def begin(self) -> None:
        """A running server, a relay, two clients."""
        self.server.launcher.start()
        await self._start_relay()
        for number in range(2):
            await self.clients.connect(number)

    async def end(self) -> None:
        """Stop the relay; nothing of it is left."""
        await self._stop_relay()
        assert len(asyncio.all_tasks()) == 1, "tasks are left"

    async def _take(self, step: Step) -> None:
        what, a, b, settle = step
        if what in _CALM_BEFORE:
            await moment()
        if what == "pause":
            await asyncio.sleep(PAUSES[a % len(PAUSES)])
        elif what == "connect":
            await self.clients.connect(a)
        elif what == "kill_relay":
            await self._stop_relay()
            await self._start_relay()
        else:
            owner = self.server if hasattr(self.server, what) else self.clients
            getattr(owner, what)(a, b)
        if settle or what == "pause" or what in _CALM_AFTER or not self.relay.open:
            await moment()
            self.model.pass_time()
            self.model.settled()

    async def _finish(self) -> None:
        """Let everything come to its end, in pieces, so that what was held back arrives."""
        self.server.launcher.release()
        await asyncio.sleep(END_SECONDS)
        self.model.pass_time()
        check(self)
        await self.end()

    async def _start_relay(self) -> None:
        self.started += 1
        self.relay = Relay(self._settings)
        self.relay.start()
        self.site = Site(Endpoint(self.relay))
        self.clients.meet(self.relay, self.site)
        self.server.meet(self.relay)
        await moment()

    async def _stop_relay(self) -> None:
        """Kill it: nobody is told anything."""
        await moment()
        self.model.relay_gone()
        self.server.launcher.drop()
        self.clients.lose_connections()
        await self.relay.close()
        for task in list(self.site.tasks):
            task.cancel()
        await asyncio.gather(*self.site.tasks, return_exceptions=True)


def play(directory: Path, loop: Loop, steps: list[Step], call_timeout: float) -> World:
    """Play a story on a loop of made-up time."""
    world = World(loop, directory, call_timeout)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(world.play(steps))
    return world
