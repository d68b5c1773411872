"""Tasks that must not end by themselves."""

import asyncio

import pytest

from mcp_operator.handlers import tasks


class Ended:
    def __init__(self) -> None:
        self.names: list[str] = []

    async def for_ever(self, name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.names.append(name)


async def fail() -> None:
    raise ZeroDivisionError("never thought of")


async def test_an_error_of_one_ends_the_other_and_is_raised() -> None:
    ended = Ended()
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(tasks.together(ended.for_ever("watches"), fail()), 5)
    assert ended.names == ["watches"]


async def test_the_ordinary_end_of_one_ends_the_other() -> None:
    ended = Ended()
    await asyncio.wait_for(tasks.together(asyncio.sleep(0.01), ended.for_ever("audit")), 5)
    assert ended.names == ["audit"]


async def test_whoever_cancels_ends_all_of_them() -> None:
    ended = Ended()
    whole = asyncio.create_task(tasks.together(ended.for_ever("watches"), ended.for_ever("audit")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    whole.cancel()
    with pytest.raises(asyncio.CancelledError):
        await whole
    assert sorted(ended.names) == ["audit", "watches"]


async def test_only_an_error_counts_as_a_death(caplog: pytest.LogCaptureFixture) -> None:
    deaths: list[str] = []
    done = tasks.start("done", asyncio.sleep(0), lambda: deaths.append("done"))
    stopped = tasks.start("stopped", Ended().for_ever("x"), lambda: deaths.append("stopped"))
    failed = tasks.start("failed", fail(), lambda: deaths.append("failed"))
    await asyncio.sleep(0)
    stopped.cancel()
    await asyncio.gather(done, stopped, failed, return_exceptions=True)
    assert deaths == ["failed"]
    assert "failed ended by an error" in caplog.text
