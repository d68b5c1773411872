"""The calls that the server is working on, by the ids it knows them under.

Ids are integers, unique over all restarts of the relay within one pod: `starts` * 2^32 + n. A call that was
given up (cancelled, timed out) stays known for a while, because the server may still work on it and send
things on its behalf: otherwise these would look like the business of whoever else is calling.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from mcp_sidecar import log
from mcp_sidecar.core import frames
from mcp_sidecar.core.deadlines import Deadlines
from mcp_sidecar.session.calls import Call
from mcp_sidecar.session.clients import Client

QUIET_SECONDS = 15.0
# A server that was told of a cancellation does not answer any more, so the end of its work is not seen: long
# enough to let it stop, short enough not to hold up the others.
ABANDONED_SECONDS = 10.0

OnAnswer = Callable[[dict[str, Any] | None], None]
"""Takes the parsed answer to a request of the relay's own; None: the process is gone."""


class CallTable:
    """Entries by upstream id, with one timer for all their deadlines."""

    def __init__(self, starts: int, call_timeout: float, max_call: float = 0.0) -> None:
        self._next = starts * frames.FIRST_OWN_ID
        self._calls: dict[int, Call] = {}
        self._own: dict[int, OnAnswer] = {}
        self._abandoned: dict[int, Client] = {}
        self._limits = Deadlines[int](call_timeout)
        # Progress moves the limit of a call, but not this one.
        self._hard = Deadlines[int](max_call) if max_call > call_timeout else None
        self._quiet = Deadlines[int](min(QUIET_SECONDS, call_timeout))
        self._memory = Deadlines[int](ABANDONED_SECONDS)
        self._first_delay = min(QUIET_SECONDS, call_timeout)
        self._timer: asyncio.Handle | None = None
        self._timer_due = 0.0  # uvloop's handles for what is due at once do not tell it
        self._loop = asyncio.get_running_loop()
        self.on_timeout: Callable[[int, Call, float], None] = lambda _number, _call, _seconds: None
        """Takes a call that was given up, and the limit that passed."""
        self.on_quiet: Callable[[Call], None] = lambda _call: None
        self._emptied: asyncio.Event | None = None

    def __len__(self) -> int:
        return len(self._calls)

    def number(self) -> int:
        """A fresh upstream id."""
        self._next += 1
        return self._next

    def add(self, number: int, call: Call) -> None:
        """Enter a client's call; its limit and its quiet time began when it started."""
        self._calls[number] = call
        call.client.calls[call.id] = number
        self._limits.add(number, call.started)
        self._quiet.add(number, call.started)
        if self._hard is not None:
            self._hard.add(number, call.started)
        self._wake_by(call.started + self._first_delay)

    def progressed(self, number: int) -> None:
        """The server reported progress with an open call: where that extends calls, its limit starts anew."""
        if self._hard is not None:
            self._limits.add(number, self._loop.time())

    def add_own(self, number: int, on_answer: OnAnswer) -> None:
        """Enter a request of the relay's own. It has no limit here."""
        self._own[number] = on_answer

    def get(self, number: int) -> Call | None:
        """The open call under an upstream id."""
        return self._calls.get(number)

    def take_own(self, number: int) -> OnAnswer | None:
        """Take out a request of the relay's own that has its answer."""
        return self._own.pop(number, None)

    def take(self, number: int) -> Call | None:
        """Take out a call that has its answer; None when nobody waits for it (any more)."""
        call = self._calls.pop(number, None)
        if call is None:
            if self._abandoned.pop(number, None) is not None:
                self._memory.discard(number)
            return None
        self._leave(number, call)
        return call

    def abandon(self, number: int) -> Call | None:
        """Take out a call that is given up while the server may still work on it."""
        call = self._calls.pop(number, None)
        if call is None:
            return None
        self._leave(number, call)
        self._abandoned[number] = call.client
        now = self._loop.time()
        self._memory.add(number, now)
        self._wake_by(now + ABANDONED_SECONDS)
        return call

    def again(self, number: int, call: Call) -> None:
        """Enter a call that takes one more request; its limit begins anew."""
        self._calls[number] = call
        call.client.calls[call.id] = number
        now = self._loop.time()
        self._limits.add(number, now)
        if self._hard is not None:
            self._hard.add(number, now)
        self._quiet.add(number, now)
        self._wake_by(now + self._first_delay)

    def exchange(self, number: int, call: Call) -> None:
        """Let another call of the same client take the place of an open one; its limit begins anew."""
        old = self._calls.pop(number)
        old.client.calls.pop(old.id, None)
        self.again(number, call)

    def unlimit(self, number: int) -> None:
        """Let an open call last as long as it likes."""
        self._limits.discard(number)
        if self._hard is not None:
            self._hard.discard(number)

    def _leave(self, number: int, call: Call) -> None:
        self._limits.discard(number)
        self._quiet.discard(number)
        call.client.left(call.id, self._loop.time())
        if self._emptied is not None and not self._calls:
            self._emptied.set()

    def clear(self) -> list[Call]:
        """The process is gone: take out everything; requests of the relay's own are told."""
        calls = list(self._calls.values())
        for number in list(self._calls):
            self.take(number)
        own, self._own = self._own, {}
        for on_answer in own.values():
            on_answer(None)
        self._abandoned.clear()
        return calls

    def owners(self) -> Iterator[Client]:
        """Whose calls the server may be working on."""
        for call in self._calls.values():  # one by one: most who ask stop at the second
            yield call.client
        yield from self._abandoned.values()

    def calls(self) -> list[tuple[int, Call]]:
        """All open calls, the oldest first."""
        return list(self._calls.items())

    async def idle(self, seconds: float) -> bool:
        """Wait until no call is open, at most `seconds`; whether it came to that. Any number may wait."""
        if self._calls:
            if self._emptied is None or self._emptied.is_set():
                self._emptied = asyncio.Event()
            try:
                await asyncio.wait_for(self._emptied.wait(), seconds)
            except TimeoutError:
                return False
        return True

    def _wake_by(self, at: float) -> None:
        """Have the timer go off at that time at the latest."""
        if self._timer is not None:
            if self._timer_due <= at:
                return
            self._timer.cancel()
        self._timer_due = at
        self._timer = self._loop.call_at(at, self._tick)

    def _arm(self) -> None:
        lists = (self._limits, self._quiet, self._memory, self._hard)
        due = [at for each in lists if each is not None and (at := each.next_at()) is not None]
        if due:
            self._wake_by(min(due))

    def _tick(self) -> None:
        self._timer, now = None, self._loop.time()
        self._each(self._quiet.expire(now), lambda number: self.on_quiet(self._calls[number]))
        self._give_up(self._limits, now)
        if self._hard is not None:
            self._give_up(self._hard, now)
        for number in self._memory.expire(now):
            self._abandoned.pop(number, None)
        self._arm()

    def _give_up(self, limits: Deadlines[int], now: float) -> None:
        def over(number: int) -> None:
            call = self.abandon(number)
            if call is not None:
                self.on_timeout(number, call, limits.delay)

        self._each(limits.expire(now), over)

    def _each(self, numbers: list[int], act: Callable[[int], None]) -> None:
        """Do it for each: a defect met by one call must not take the limit away from all others."""
        for number in numbers:
            try:
                act(number)
            except Exception as error:  # noqa: BLE001 - see above
                log.failure("deadline_failed", error)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
