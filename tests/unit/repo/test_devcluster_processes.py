"""Starting, recognising and stopping the local node's programs, with real processes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster import leftovers, processes, say, shell
from devcluster.layout import Layout
from devcluster.processes import Record, Supervisor

STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('deaf', flush=True)
time.sleep(60)
"""


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    made = Supervisor(tmp_path / "pids", tmp_path / "logs")
    yield made
    for name in made.names():
        made.stop(name, grace=0)


@pytest.mark.parametrize("name", ["plain", "with space", "a) S 1 (b", ")))"])
def test_state_and_start_time_are_read_behind_any_program_name(name: str) -> None:
    fields = " ".join(["S", *map(str, range(1, 50))])
    assert processes.parse_stat(f"42 ({name}) {fields}") == ("S", 19)


def test_a_started_program_is_alive_until_it_is_stopped(supervisor: Supervisor) -> None:
    pid = supervisor.start("sleeper", ["sleep", "60"])
    assert supervisor.alive("sleeper")
    assert supervisor.names() == ["sleeper"]
    supervisor.stop("sleeper")
    assert not supervisor.alive("sleeper")
    assert processes.observe(pid) is None
    assert supervisor.names() == []


def test_a_program_that_would_end_in_order_can_be_killed(supervisor: Supervisor, tmp_path: Path) -> None:
    ended, ready = tmp_path / "ended", tmp_path / "ready"
    supervisor.start(
        "orderly",
        ["sh", "-c", f"trap 'touch {ended}; exit' TERM; touch {ready}; while :; do sleep 0.1; done"],
    )
    shell.wait_until("it is set up", ready.exists, 10, every=0.01)
    supervisor.kill("orderly")
    assert not supervisor.alive("orderly")
    assert supervisor.names() == []
    assert not ended.exists()


def test_another_process_can_take_the_records_up(supervisor: Supervisor) -> None:
    supervisor.start("sleeper", ["sleep", "60"])
    assert Supervisor(supervisor.pids, supervisor.logs).alive("sleeper")


def test_a_program_that_ignores_sigterm_is_killed(supervisor: Supervisor) -> None:
    pid = supervisor.start("stubborn", [sys.executable, "-c", STUBBORN])
    shell.wait_until("it ignores SIGTERM", lambda: supervisor.tail("stubborn") == "deaf", 10, every=0.01)
    supervisor.stop("stubborn", grace=0.1)
    assert processes.observe(pid) is None


@pytest.mark.parametrize("change", [{"started": 1}, {"program": "etcd"}], ids=["start time", "program"])
def test_a_pid_that_went_to_somebody_else_is_never_signalled(
    supervisor: Supervisor, change: dict[str, object]
) -> None:
    bystander = supervisor.start("bystander", ["sleep", "60"])
    observed = processes.observe(bystander)
    assert observed
    record = {"pid": observed.pid, "started": observed.started, "program": observed.program, **change}
    (supervisor.pids / "etcd.json").write_text(json.dumps(record), encoding="utf-8")
    assert not supervisor.alive("etcd")
    supervisor.stop("etcd", grace=0)
    assert supervisor.alive("bystander")
    assert supervisor.names() == ["bystander"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_a_record_that_a_crash_cut_short_counts_as_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "etcd.json"
    path.write_text(text, encoding="utf-8")
    assert processes.read_record(path) is None


def test_a_program_that_ends_is_reported_with_the_end_of_its_log(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    # It ends when it is told to: one that ends before it is looked at was never started.
    script = f"open({str(gate)!r}).read(); print('port is taken'); raise SystemExit(3)"
    pid = supervisor.start("short", [sys.executable, "-c", script])
    gate.write_text("end")
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(say.ClusterError, match="port is taken"):
        supervisor.check("short")


def test_a_zombie_is_not_alive() -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert processes.observe(child.pid) is None
    assert not processes.is_alive(Record(child.pid, 1, "true"))


WHERE = Layout(cache=Path("/c"), run=Path("/run/x"))


@pytest.mark.parametrize(
    ("words", "ours"),
    [
        (["/usr/bin/containerd-shim-runc-v2", "-id", "a", "-address", "/run/x/containerd.sock"], True),
        (
            ["/usr/bin/containerd-shim-runc-v2", "-id", "a", "-address", "/run/containerd/containerd.sock"],
            False,
        ),
        (["vi", "-address", "/run/x/containerd.sock"], False),
        ([""], False),
    ],
)
def test_a_shim_is_ours_if_it_reports_to_our_containerd(words: list[str], ours: bool) -> None:
    assert leftovers.is_shim_of(words, WHERE.containerd_socket) is ours


@pytest.mark.parametrize(
    ("words", "ours"),
    [
        (["/c/bin/node-v1/etcd", "--data-dir=/c"], True),
        (["/c/bin/node-v1/kubectl", "port-forward"], False),
        (["/usr/bin/etcd"], False),
        (["containerd", "--config", "/c/cluster/etc/containerd.toml"], True),
        (["containerd"], False),
        ([""], False),
    ],
)
def test_a_stray_program_is_ours_if_it_is_our_build_or_reads_our_configuration(
    words: list[str], ours: bool
) -> None:
    assert leftovers.is_own_program(words, WHERE, ["containerd", "etcd"]) is ours


def test_mounts_are_undone_newest_first_and_only_below_the_given_folders() -> None:
    mountinfo = "\n".join(
        f"{number} 1 0:1 / {point} rw - tmpfs tmpfs rw"
        for number, point in enumerate(["/", "/run/x", "/run/x/a\\040b", "/run/xy", "/run/x/a\\040b/c", "/c"])
    )
    assert leftovers.mounts_below(mountinfo, [Path("/run/x")]) == ["/run/x/a b/c", "/run/x/a b", "/run/x"]
