"""The arithmetic of the benchmarks; what they measure is measured by `make bench`."""

import asyncio
import time
from types import SimpleNamespace

import cluster
import loopback
import measure
import pytest
import recovery


async def test_latency_is_the_median_and_the_99th_percentile_of_the_counted_calls() -> None:
    made = 0

    async def call() -> None:
        nonlocal made
        made += 1

    figures = await measure.latency(call, 200)
    assert made == 200 + measure.WARM_UP_CALLS
    assert 0 <= figures["median_ms"] <= figures["p99_ms"]


async def test_throughput_counts_the_answers_of_all_clients() -> None:
    made = 0

    async def call() -> None:
        nonlocal made
        await asyncio.sleep(0.01)
        made += 1

    started = time.perf_counter()
    rate = await measure.throughput([call] * 4, 0.1)
    took = time.perf_counter() - started
    assert made >= 4
    assert made / took <= rate <= made / 0.1


async def test_throughput_counts_what_calls_repeat_by_themselves() -> None:
    class Ten:
        async def __call__(self) -> None:
            raise AssertionError("it is to repeat itself")

        async def repeat(self, deadline: float) -> int:
            await asyncio.sleep(deadline - time.perf_counter())
            return 10

    started = time.perf_counter()
    rate = await measure.throughput([Ten() for _ in range(4)], 0.1)
    assert 40 / (time.perf_counter() - started) <= rate <= 40 / 0.1


async def test_the_longest_wait_is_taken_while_the_long_call_runs() -> None:
    gate = asyncio.Event()

    async def big() -> None:
        await gate.wait()

    async def small() -> None:
        await asyncio.sleep(0.02)
        gate.set()

    assert await measure.longest_wait(small, big, 1) >= 20


async def test_the_duration_is_the_median_of_some_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses, now = iter([8.0, 1.0, 2.0]), 100.0

    async def call() -> None:
        nonlocal now
        now += next(pauses)

    monkeypatch.setattr(measure, "time", SimpleNamespace(perf_counter=lambda: now))
    assert await measure.duration(call, 3) == 2


def test_medians_are_taken_over_the_repetitions_that_have_the_figure() -> None:
    rows = [{"a": 1.0, "b": 5.0}, {"a": 3.0}, {"a": 2.0}]
    assert measure.medians(rows) == {"a": 2.0, "b": 5.0}


async def test_two_that_are_compared_take_turns_and_neither_is_always_the_first() -> None:
    order: list[str] = []

    async def take(name: str) -> float:
        order.append(name)
        return float(len(order))

    found = await measure.in_turns(lambda: take("one"), lambda: take("other"), 3)
    assert order == ["other", "one", "one", "other", "other", "one"]
    assert found.pairs == [(2.0, 1.0), (3.0, 4.0), (6.0, 5.0)]
    assert found.medians == (3.0, 4.0)
    assert found.ratio == 5 / 6


def test_a_missing_figure_is_shown_as_a_dash() -> None:
    assert [measure.show(None), measure.show(1234.567, 0)] == ["-", "1,235"]
    assert measure.table(["x"], [["1"]]) == "| x |\n| --- |\n| 1 |"


def loopback_row(scale: float) -> dict[str, float]:
    keys = [key for _, key, _ in loopback.COLUMNS]
    return {**dict.fromkeys(keys, scale), "mib_settled": scale}


def test_the_loopback_bars_compare_with_the_floor_and_with_the_best_peer() -> None:
    rows = {name: loopback_row(scale) for name, scale in (("stdio", 1), ("constant", 1), ("relay", 20))}
    rows |= {"stdio, SDK server": loopback_row(50), "relay, SDK server": {"share_16": 0.94, "share_64": 0.96}}
    assert not any("peer" in line[0] or "sources" in line[0] for line in loopback.bars(rows))
    rows["relay"] |= {"compiled_16": 1.166, "compiled_64": 1.2}
    rows |= {
        "relay, JWT": {"jwt_1": 0.8, "jwt_16": 0.9, "jwt_64": 1.1},
        "slow": {**loopback_row(2), "times_16": 7.9, "warm_16": 7.0},
        "slower": {**loopback_row(1), "c64": 3, "times_64": 10.0, "warm_64": 9.0},
    }
    assert loopback.best_peers(rows) == {"slow": [16], "slower": [64]}
    lines = {line[0]: line[2] for line in loopback.bars(rows)}
    assert lines["calls/s at 16 clients, to the best peer's"] == "7.9 times"
    assert lines["calls/s at 16 clients, to the best peer's when it is warm"] == "7.0 times"
    assert lines["calls/s at 16 clients, compiled to as it is in its sources"] == "1.17 times"
    assert lines["calls/s at 16 clients with JWT, to a bearer token's"] == "0.90"
    assert lines["calls/s of an SDK server at 64 clients, of what it gives alone"] == "96 %"
    assert lines["median added to stdio"] == "19.00 ms"
    verdicts = {line[0]: line[3] for line in loopback.bars(rows)}
    assert verdicts["calls/s at 64 clients, to the best peer's"] == "reached"
    assert verdicts["calls/s at 16 clients, to the best peer's"] == "missed"
    assert verdicts["calls/s of an SDK server at 16 clients, of what it gives alone"] == "missed"
    assert verdicts["median added to stdio"] == verdicts["8 MiB result, to stdio's"] == "missed"


@pytest.mark.parametrize(
    ("ready", "shown", "verdict"),
    [
        (1.5, "1.00 s + 0.50 s", "reached"),
        (0.9, "1.00 s + -0.10 s", "reached"),
        (2, "1.00 s + 1.00 s", "missed"),
    ],
)
def test_the_start_bar_is_told_as_what_comes_on_top_of_a_bare_pod(
    ready: float, shown: str, verdict: str
) -> None:
    times = {"bare_pod_s": 0.7, "handshake_s": 0.3, "ready_s": ready, "first_answer_s": 2, "delete_s": 5}
    times |= {"kill_told_s": 0.2, "kill_ready_s": 3, "relay_kill_answer_s": 1.5}
    load = {"median_ms": 0.5, "p99_ms": 1, "c1": 1, "c16": 2, "c64": 3, "mib": 30}
    lines = {line[0]: line[2:] for line in cluster.bars({"times": times, "relay": load, "constant": load})}
    assert lines["apply to Ready"] == [shown, verdict]
    assert lines["calls/s, 64 clients (constant reply)"] == ["3 (3)", ""]


def test_a_status_is_told_as_phase_ready_and_reason() -> None:
    conditions = [{"type": "Ready", "status": "False"}]
    status = {"phase": "Recreating", "conditions": conditions, "error": {"reason": "OOMKilled"}}
    assert recovery.words({"status": status}) == "Recreating/False OOMKilled"
    assert recovery.words(
        {"status": {"phase": "Connected", "conditions": [{"type": "Ready", "status": "True"}]}}
    ) == ("Connected/True")


def test_a_row_on_recovery_has_every_run_and_the_status_of_the_last() -> None:
    told = [(0.0, "Connected/True"), (0.2, "Recreating/False")]
    first = recovery.Row(2.9, told, "-32000 at 0.0 s", "continues")
    never = recovery.Row(None, [], "-32000 at 0.0 s", "404")
    assert recovery.line("fault", [never, first]) == [
        "fault (2)",
        "never, 2.9",
        "Connected/True at 0.0, Recreating/False at 0.2",
        "-32000 at 0.0 s",
        "404, continues",
    ]


def test_a_server_works_again_with_the_first_success_after_the_last_failure() -> None:
    served = [recovery.Attempt(0.0, 0.1, served=True), recovery.Attempt(2.9, 3.1, served=True)]
    failed = [recovery.Attempt(0.1, 0.2, served=False), recovery.Attempt(2.0, 2.1, served=False)]
    assert recovery.works_again([*served, *failed]) == 3.1
    assert recovery.works_again(served) == 0.0
    assert recovery.works_again(failed) is None
