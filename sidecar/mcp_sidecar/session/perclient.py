"""A process for each client session, instead of one for all.

The first process of the launcher serves no client: it says whether the command works, and which tools there
are. Each session gets a relay of its own, to a process of its own; nothing is shared between these but the
metrics. Clients without a session can keep nothing between two requests: they have one process together.
"""

import asyncio
import contextlib
import dataclasses
import logging
import secrets
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

from mcp_sidecar import log
from mcp_sidecar.core import capacity, control, document, frames
from mcp_sidecar.core.bucket import Limits
from mcp_sidecar.core.document import Problem
from mcp_sidecar.core.machine import State
from mcp_sidecar.core.sessionid import RANDOM_BYTES
from mcp_sidecar.session.calls import RefusedError
from mcp_sidecar.session.clients import RETRY_AFTER_SECONDS, Client
from mcp_sidecar.session.inbound import Inbound
from mcp_sidecar.session.relay import IDLE_CHECK_SECONDS, READY_SECONDS, Relay
from mcp_sidecar.session.upstream import Upstream
from mcp_sidecar.settings import EXPIRE, SHARED, Settings
from mcp_sidecar.stdio.keeper import Keeper, KeeperError

COMMONS = "commons"
"""How the name of a process for clients without a session begins; those of sessions are hexadecimal."""
COMMONS_RANDOM_BYTES = 4
NAME_LENGTH = 16
LAST_WORDS_SECONDS = 0.3
STOP_AGAIN_SECONDS = 0.2
STEADY_SECONDS = 60.0
"""As the launcher's `--steady`."""
_UNAVAILABLE = 503


class Cell:
    """One process, and who it is for; `client` is None before its session is found, and for the commons.

    `subject` is empty for the commons, and as long as nobody came back to a process of an earlier relay.
    """

    __slots__ = ("client", "ended", "name", "relay", "starting", "subject", "used", "watch")

    def __init__(self, name: str, relay: Relay, now: float) -> None:
        self.name = name
        self.relay = relay
        self.client: Client | None = None
        self.subject = ""
        self.used = now
        self.starting = False
        self.ended = False
        self.watch: asyncio.Task[None] | None = None

    @property
    def in_use(self) -> bool:
        """Whether somebody waits for it or listens to it."""
        return self.working or self.listening

    @property
    def working(self) -> bool:
        """Whether somebody waits for it, or somebody without a session listens to it."""
        shared = self.relay.shared
        called = self.client is not None and bool(self.client.calls)
        waited_for = self.starting or called or len(self.relay.upstream.gate) > 0
        return waited_for or shared.clients.guests > 0 or len(shared.table) > 0

    @property
    def listening(self) -> bool:
        """Whether its session has an open stream."""
        return self.client is not None and self.client.stream is not None

    @property
    def last_used(self) -> float:
        """When it was used last, by the clock of the event loop."""
        return self.used if self.client is None else self.client.last_used


class First(Upstream):
    """The session with the first process: when that ends after a long time, the launcher starts it again."""

    def _exit(self, message: dict[str, Any]) -> None:
        process = self.shared.board.facts.process
        ended = control.ended(message, time.time())
        steady = process is not None and ended.time - process.start_time >= STEADY_SECONDS
        if self.state is not State.CONNECTED or not steady:
            super()._exit(message)
            return
        how = document.how_ended(ended)
        log.event("first_process_ended", logging.WARNING, how=how)
        self.listing.stop()
        text = f"The process that tells of the server {how}; it is started again. Clients keep theirs"
        self._lose(Problem("Transport", "ConnectionLost", text))
        self._fail_calls(f"it {how}")


class PerClient(Relay):
    """Holds the session with the first process, and the relays of all others."""

    def __init__(self, settings: Settings) -> None:
        self._cells: dict[str, Cell] = {}
        self._by_sid: dict[str, Client] = {}
        self._common = ""  # name of the process for clients without a session
        self._ending: dict[asyncio.Task[None], str] = {}
        """Ends of processes, with their names."""
        self._adopted: set[str] = set()
        super().__init__(settings)
        self._keeper = Keeper(settings.control_path)

    def _upstream(self, inbound: Inbound) -> Upstream:
        return First(self.shared, inbound, self.outbound)

    def start(self) -> None:
        """Begin to connect, also to the processes that an earlier relay has left."""
        super().start()
        self._forget_all_but(self._keeper.running())
        self._adopt()
        sweeper = self._loop.create_task(self._sweep())
        sweeper.add_done_callback(self._task_ended)
        self._tasks.append(sweeper)

    @property
    def _states(self) -> Path:
        return self.settings.state_dir / "processes"

    def _forget_all_but(self, names: list[str]) -> None:
        """Remove the state of processes that ended while there was no relay."""
        for folder in self._states.glob("*"):
            if folder.name not in names:
                shutil.rmtree(folder, ignore_errors=True)

    def _adopt(self) -> None:
        """Take up processes of an earlier relay, once each; one that it had just asked for is seen late."""
        for name in self._keeper.running():
            if name in self._cells or name in self._adopted or name in self._ending.values():
                continue
            self._adopted.add(name)
            self._make(name, found=True)
            if name.startswith(COMMONS):
                self._common = name

    def _make(self, name: str, *, found: bool = False) -> Cell:
        settings = dataclasses.replace(
            self.settings,
            socket_path=self._keeper.socket(name),
            state_dir=self._states / name,
            session_mode=SHARED,
            on_server_restart=EXPIRE,
            limits=Limits(),  # what holds for clients was asked for before
            audit=False,
        )
        relay = Relay(settings, self.metrics)
        cell = self._cells[name] = Cell(name, relay, self._loop.time())
        clients = relay.shared.clients

        def ended(client: Client, reason: str) -> None:
            relay.outbound.client_ended(client, reason)
            self._end(cell, reason)

        clients.on_end, clients.on_change = ended, self.shared.board.clients_changed
        relay.on_failure = self._failed
        relay.start()
        cell.watch = self._loop.create_task(self._watch(cell, found=found))
        cell.watch.add_done_callback(self._watch_ended)
        self.shared.board.clients_changed()
        return cell

    def _failed(self) -> None:
        self.on_failure()

    def _watch_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._task_ended(task)

    async def _watch(self, cell: Cell, *, found: bool) -> None:
        """Have the process started and see its end."""
        # One that is ended meanwhile waits for nothing: its own end waits for this.
        limit = self.settings.max_processes
        while not cell.ended and self._ending and len(self._cells) + len(self._ending) > limit:
            await asyncio.wait(set(self._ending), return_when=asyncio.FIRST_COMPLETED)
        if cell.ended:
            return
        try:
            code, why = await (self._keeper.watch if found else self._keeper.run)(cell.name), ""
        except KeeperError as error:
            code, why = 255, str(error)
        upstream = cell.relay.upstream
        if not cell.ended and upstream.state is not State.EXITED:
            await asyncio.sleep(LAST_WORDS_SECONDS)  # its own launcher's report may be on its way
        if cell.ended:
            return
        if upstream.state is not State.EXITED:
            reason = "StartFailed" if why else "Exited"
            upstream.control({"event": "exit", "exitCode": code, "reason": reason, "message": why})
        self._finish_client(cell, "process_ended")

    def _finish_client(self, cell: Cell, reason: str) -> None:
        if cell.client is not None:
            cell.relay.shared.clients.end(cell.client, reason)
        self._end(cell, reason)

    def _end(self, cell: Cell, reason: str) -> None:
        """End a process; its session, if it had one, has ended."""
        if cell.ended:
            return
        cell.ended = True
        del self._cells[cell.name]
        if cell.client is not None:
            self._by_sid.pop(cell.client.sid, None)
        if cell.relay.upstream.state not in (State.EXITED, State.REFUSED):
            cell.relay.upstream.terminate()  # who waits for it is told; those two say more
        self._tell_end(cell.name, reason, cell.relay.shared.board.facts.exit)
        task = self._loop.create_task(self._stop(cell))
        self._ending[task] = cell.name
        task.add_done_callback(self._ending.pop)
        task.add_done_callback(self._watch_ended)
        self.shared.board.clients_changed()

    def _tell_end(self, name: str, reason: str, found: document.Exit | None) -> None:
        """Log and count the end of a process; `found` is how it ended, if it was by itself."""
        if found is None:
            log.event("process_ended", process=name, reason=reason)
            self.metrics.count("mcp_relay_processes_ended", reason)
            return
        how = document.how_ended(found)
        log.event("process_ended", logging.WARNING, process=name, reason=found.reason, how=how)
        self.metrics.count("mcp_relay_processes_ended", document.end_label(found))
        if found.exit_code != 0:
            self.shared.board.note(process_failure=found)

    async def _stop(self, cell: Cell) -> None:
        await cell.relay.close()  # so that its launcher waits for nobody
        while cell.watch is not None and not cell.watch.done():
            # Refused if it has ended, or if the request to start it is still on its way.
            with contextlib.suppress(KeeperError):
                await self._keeper.stop(cell.name)
            await asyncio.wait([cell.watch], timeout=STOP_AGAIN_SECONDS)
        shutil.rmtree(cell.relay.settings.state_dir, ignore_errors=True)

    def _make_room(self, newcomer: str) -> None:
        """Raises RefusedError when all processes are in use."""
        if len(self._cells) < self.settings.max_processes:
            return
        held = Counter(cell.subject or newcomer for cell in self._cells.values())

        def turn(cell: Cell) -> capacity.Rank | None:
            return capacity.rank(
                cell.subject or newcomer,  # what nobody has alone goes as if it were his own
                newcomer,
                held,
                working=cell.working,
                listening=cell.listening,
                last_used=cell.last_used,
            )

        found = capacity.first(self._cells.values(), turn)
        if found is None:
            limit = self.settings.max_processes
            text = f"All {limit} processes of this server are in use; try again later"
            data = {"reason": "capacity", "max_processes": limit}
            raise RefusedError(frames.SERVER_ERROR, text, data, _UNAVAILABLE, RETRY_AFTER_SECONDS)
        self._finish_client(found, "capacity")

    async def initialize(self, frame: frames.Frame, subject: str) -> tuple[str, bytes]:
        """Start a process for a new session, and answer `initialize` as it does.

        Raises:
            RefusedError: it cannot be used, or all processes are in use.

        """
        await self.upstream.gate.ready(READY_SECONDS)
        self._make_room(subject)
        random = secrets.token_bytes(RANDOM_BYTES)
        cell = self._make(_name(random))
        cell.starting, cell.subject = True, subject
        try:
            await cell.relay.upstream.gate.ready(READY_SECONDS)
            sid, body = cell.relay.admit(frame, subject, random)
            self._enter(cell, cell.relay.find(sid, subject))
        finally:
            cell.starting = False
            if cell.client is None:
                self._end(cell, "not_started")
        return sid, body

    def _enter(self, cell: Cell, client: Client | None) -> Client | None:
        if client is not None:
            cell.client = self._by_sid[client.sid] = client
            cell.subject = client.subject
        return client

    def find(self, sid: str, subject: str) -> Client | None:
        """The client's session, or None."""
        client = self._by_sid.get(sid)
        if client is not None:
            return client.home.find(sid, subject)
        ticket = self._signer.verify(sid, subject)
        cell = None if ticket is None else self._cells.get(_name(ticket.random))
        return None if cell is None else self._enter(cell, cell.relay.find(sid, subject))

    def commons(self) -> Relay:
        """The relay for clients without a session; its process starts with the first of them."""
        cell = self._cells.get(self._common)
        if cell is None:
            # Where tokens tell clients apart it is for somebody else than any; else all are the same one.
            apart = self.settings.jwt is not None
            self._make_room("" if apart else next((one.subject for one in self._cells.values()), ""))
            # Another name each time: the one before may still be ending.
            self._common = COMMONS + secrets.token_hex(COMMONS_RANDOM_BYTES)
            cell = self._make(self._common)
        cell.used = self._loop.time()
        return cell.relay

    async def _sweep(self) -> None:
        """End what nobody uses any more: of sessions, their relays know; here the rest."""
        idle = self.settings.idle_timeout
        while True:
            await asyncio.sleep(min(IDLE_CHECK_SECONDS, idle / 4))
            self._adopt()
            before = self._loop.time() - idle
            for cell in list(self._cells.values()):
                if cell.relay.upstream.muted:
                    self._finish_client(cell, "process_ended")
                elif cell.client is None and not cell.in_use and cell.last_used < before:
                    self._end(cell, "idle")

    def parts(self) -> list[Relay]:
        """All relays."""
        return [self, *(cell.relay for cell in self._cells.values())]

    def processes(self) -> int | None:
        """Number of processes for clients."""
        return len(self._cells)

    async def drain(self, seconds: float) -> None:
        """No new calls; let the open ones finish for at most `seconds`, then answer them with an error."""
        drains = [cell.relay.drain(seconds) for cell in self._cells.values()]
        await asyncio.gather(super().drain(seconds), *drains)

    async def close(self) -> None:
        """Stop everything of this relay; the processes are the launcher's."""
        watches = [cell.watch for cell in self._cells.values() if cell.watch is not None]
        for task in (*watches, *self._ending):
            task.cancel()
        await asyncio.gather(*watches, *self._ending, return_exceptions=True)
        for cell in self._cells.values():
            await cell.relay.close()
        await super().close()


def _name(random: bytes) -> str:
    """The process of the session whose id has these bytes."""
    return random.hex()[:NAME_LENGTH]
