"""Start and stop long-running programs by records of their own.

A record holds the pid, the kernel's start time of that process and its first argument, so a number that was
given to somebody else in the meantime (after a crash, a reboot) is never signalled.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from devcluster import say, shell

STAT_STATE, STAT_START_TIME = 0, 19  # fields of /proc/PID/stat counted after the program's name


@dataclass(frozen=True)
class Record:
    """One started process; `started` in clock ticks since boot."""

    pid: int
    started: int
    program: str


def parse_stat(stat: str) -> tuple[str, int]:
    """State letter and start time from /proc/PID/stat; the name in it may itself hold brackets and spaces."""
    fields = stat.rpartition(")")[2].split()
    return fields[STAT_STATE], int(fields[STAT_START_TIME])


def observe(pid: int, proc: Path = Path("/proc")) -> Record | None:
    """What runs as `pid` now; None if nothing does (a zombie is nothing)."""
    try:
        state, started = parse_stat((proc / str(pid) / "stat").read_text(encoding="utf-8"))
        words = (proc / str(pid) / "cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state == "Z" else Record(pid, started, words[0].decode(errors="replace"))


def read_record(path: Path) -> Record | None:
    """A stored record; None if there is none or a crash left it unfinished."""
    try:
        return Record(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def is_alive(record: Record | None, proc: Path = Path("/proc")) -> bool:
    """Whether the very process of the record still runs. One about to end has no arguments any more."""
    now = observe(record.pid, proc) if record else None
    if record is None or now is None:
        return False
    return now.started == record.started and now.program in (record.program, "")


@dataclass(frozen=True)
class Supervisor:
    """Keeps records in `pids` and output in `logs`."""

    pids: Path
    logs: Path
    children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    """What this very process started, to be reaped by it."""

    def _path(self, name: str) -> Path:
        return self.pids / f"{name}.json"

    def alive(self, name: str) -> bool:
        """Whether `name` was started and still runs."""
        return is_alive(read_record(self._path(name)))

    def names(self) -> list[str]:
        """Everything on record, running or not."""
        return sorted(path.stem for path in self.pids.glob("*.json"))

    def start(self, name: str, argv: Sequence[str | Path], env: Mapping[str, str] | None = None) -> int:
        """Start a program in a session of its own and return its pid. Its output goes to `logs/NAME.log`."""
        self.pids.mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        with (self.logs / f"{name}.log").open("wb") as log:
            child = subprocess.Popen(
                [str(word) for word in argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **(env or {})},
            )
        self.children[name] = child
        temporary = self._path(name).with_suffix(".new")
        temporary.write_text(
            json.dumps(asdict(self._await_exec(name, child, str(argv[0])))), encoding="utf-8"
        )
        temporary.replace(self._path(name))
        return child.pid

    def _await_exec(self, name: str, child: subprocess.Popen[bytes], program: str) -> Record:
        """The record of a new child, once the kernel shows its arguments: for a moment they are empty."""
        for _ in range(10_000):
            record = observe(child.pid)
            if record and record.program == program:
                return record
            if child.poll() is not None:
                break
            time.sleep(0.001)
        raise say.ClusterError(f"{name} ended at once ({child.poll()}):\n{self.tail(name)}")

    def stop(self, name: str, grace: float = 5.0) -> None:
        """SIGTERM, then SIGKILL after `grace` seconds; forget the record. Does nothing if it does not run."""
        record = read_record(self._path(name))
        if record and is_alive(record):
            os.kill(record.pid, signal.SIGTERM)
            try:
                shell.wait_until(f"{name} stops", lambda: not is_alive(record), grace, every=0.02)
            except say.ClusterError:
                self._kill(name, record)
        self._forget(name)

    def kill(self, name: str) -> None:
        """SIGKILL; forget the record. Does nothing if it does not run."""
        record = read_record(self._path(name))
        if record and is_alive(record):
            self._kill(name, record)
        self._forget(name)

    def _kill(self, name: str, record: Record) -> None:
        os.kill(record.pid, signal.SIGKILL)
        shell.wait_until(f"{name} is killed", lambda: not is_alive(record), 10, every=0.02)

    def _forget(self, name: str) -> None:
        if child := self.children.pop(name, None):
            child.poll()
        self._path(name).unlink(missing_ok=True)

    def tail(self, name: str, lines: int = 15) -> str:
        """The end of a program's log."""
        path = self.logs / f"{name}.log"
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else "(no log)"
        return "\n".join(text.splitlines()[-lines:])

    def check(self, name: str) -> None:
        """Raise ClusterError with the end of its log if `name` no longer runs."""
        if not self.alive(name):
            raise say.ClusterError(
                f"{name} has ended; its log {self.logs / name}.log ends so:\n{self.tail(name)}"
            )
