"""The work queue, with a clock that jumps instead of sleeping."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from mcp_operator.adapters.errors import OutageError
from mcp_operator.handlers.workqueue import CAP_SECONDS, WorkQueue

KEY = ("default", "time")
OTHER = ("default", "everything")


class JumpingLoop(asyncio.SelectorEventLoop):
    """When nothing is ready, time jumps to the next timer."""

    def __init__(self) -> None:
        super().__init__(selectors.SelectSelector())
        self.jumped = 0.0
        waiting = self._selector.select  # type: ignore[attr-defined]  # the one place where a loop waits

        def select(timeout: float | None) -> Any:
            if timeout:
                self.jumped += timeout
            return waiting(0 if timeout else timeout)

        self._selector.select = select  # type: ignore[attr-defined]  # see above

    def time(self) -> float:
        return self.jumped


Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture
def run() -> Iterator[Run]:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        yield runner.run


class Work:
    """Records when it ran; fails or asks for another run as told; holds while `gate` is closed."""

    def __init__(self, concurrency: int = 4) -> None:
        self.runs: list[tuple[float, tuple[str, str]]] = []
        self.fails = 0
        self.error: Exception = ConnectionError("a webhook is away")
        self.again: list[float] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.active = 0
        self.most = 0
        self.failures: list[float] = []
        self.queue = WorkQueue(self, concurrency, lambda key, error, delay: self.failures.append(delay))

    async def __call__(self, key: tuple[str, str]) -> float | None:
        self.runs.append((asyncio.get_running_loop().time(), key))
        self.active += 1
        self.most = max(self.most, self.active)
        try:
            await self.gate.wait()
        finally:
            self.active -= 1
        if self.fails:
            self.fails -= 1
            raise self.error
        return self.again.pop(0) if self.again else None

    def times(self) -> list[float]:
        return [round(moment, 3) for moment, _ in self.runs]


def test_a_wake_up_runs_at_once_and_only_once(run: Run) -> None:
    async def scenario() -> None:
        work = Work()
        work.queue.wake(KEY)
        await asyncio.sleep(100)
        assert work.times() == [0]
        assert work.queue.oldest() == 0

    run(scenario())


def test_wake_ups_during_a_run_become_one_more_run(run: Run) -> None:
    async def scenario() -> None:
        work = Work()
        work.gate.clear()
        work.queue.wake(KEY)
        await asyncio.sleep(1)
        for _ in range(50):
            work.queue.wake(KEY)
        work.gate.set()
        await asyncio.sleep(1)
        assert work.times() == [0, 1]

    run(scenario())


def test_one_key_never_runs_twice_at_once_and_others_do_not_wait_for_it(run: Run) -> None:
    async def scenario() -> None:
        work = Work()
        work.gate.clear()
        work.queue.wake(KEY)
        work.queue.wake(OTHER)
        await asyncio.sleep(1)
        work.queue.wake(KEY)
        await asyncio.sleep(1)
        assert [key for _, key in work.runs] == [KEY, OTHER]
        assert work.queue.oldest() == pytest.approx(2)
        work.gate.set()
        await work.queue.close()

    run(scenario())


def test_no_more_keys_run_at_once_than_allowed(run: Run) -> None:
    async def scenario() -> None:
        work = Work(concurrency=3)
        work.gate.clear()
        for number in range(10):
            work.queue.wake(("default", str(number)))
        await asyncio.sleep(1)
        assert work.active == 3
        work.gate.set()
        await asyncio.sleep(1)
        assert len(work.runs) == 10
        assert work.most == 3

    run(scenario())


def test_a_run_is_repeated_when_it_asked_for(run: Run) -> None:
    async def scenario() -> None:
        work = Work()
        work.again = [7.0, 5.0]
        work.queue.wake(KEY)
        await asyncio.sleep(100)
        assert work.times() == [0, 7, 12]

    run(scenario())


def test_an_event_runs_before_the_time_that_was_asked_for_and_replaces_it(run: Run) -> None:
    async def scenario() -> None:
        work = Work()
        work.again = [60.0]
        work.queue.wake(KEY)
        await asyncio.sleep(10)
        work.queue.wake(KEY)
        await asyncio.sleep(200)
        assert work.times() == [0, 10]

    run(scenario())


def test_failures_are_repeated_after_growing_delays_with_a_cap(run: Run) -> None:
    async def scenario() -> None:
        work = Work()
        work.fails = 12
        work.queue.wake(KEY)
        await asyncio.sleep(1000)
        assert work.failures == [
            0.25,
            0.5,
            1,
            2,
            4,
            8,
            16,
            32,
            CAP_SECONDS,
            CAP_SECONDS,
            CAP_SECONDS,
            CAP_SECONDS,
        ]
        assert len(work.runs) == 13

    run(scenario())


def test_after_an_outage_of_the_api_server_work_goes_on_within_a_second_however_long_it_was(run: Run) -> None:
    async def scenario() -> None:
        work = Work()
        work.error, work.fails = OutageError("refused"), 100
        work.queue.wake(KEY)
        await asyncio.sleep(200)
        assert work.failures == [0.25, 0.5, *[1.0] * 98]
        assert len(work.runs) == 101

    run(scenario())


def test_success_forgets_the_failures(run: Run) -> None:
    async def scenario() -> None:
        work = Work()
        work.fails = 3
        work.queue.wake(KEY)
        await asyncio.sleep(100)
        work.fails = 1
        work.queue.wake(KEY)
        await asyncio.sleep(100)
        assert work.failures == [0.25, 0.5, 1, 0.25]

    run(scenario())


def test_events_during_a_failure_do_not_make_a_hot_loop(run: Run) -> None:
    async def scenario() -> None:
        work = Work()
        work.fails = 1000
        for _ in range(100):
            work.queue.wake(KEY)
            await asyncio.sleep(0.01)
        assert len(work.runs) <= 4

    run(scenario())


def test_an_event_shortens_a_long_delay_after_failures(run: Run) -> None:
    async def scenario() -> None:
        work = Work()
        work.fails = 9
        work.queue.wake(KEY)
        await asyncio.sleep(64)
        before = len(work.runs)
        work.queue.wake(KEY)
        await asyncio.sleep(1)
        assert len(work.runs) == before + 1

    run(scenario())


def test_closing_ends_runs_and_timers_and_can_be_repeated(run: Run) -> None:
    async def scenario() -> None:
        work = Work()
        work.gate.clear()
        work.queue.wake(KEY)
        await asyncio.sleep(0)
        await work.queue.close()
        await work.queue.close()
        work.queue.wake(KEY)
        await asyncio.sleep(10)
        assert work.active == 0
        assert len(work.runs) <= 1

    run(scenario())
