"""Run other programs, with errors that show what they said."""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from devcluster import say

Made = TypeVar("Made")
RETRY_PAUSES = (2.0, 10.0)
"""Seconds before what downloads is tried again."""


def run(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    text_in: str | None = None,
    log: Path | None = None,
) -> str:
    """Run a program to its end and return its standard output.

    `env` is added to this process's environment; `log` also receives everything the program printed.

    Raises:
        ClusterError: it is missing or failed; the message has the last lines of its output.
    """
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            input=text_in,
            stdin=subprocess.DEVNULL if text_in is None else None,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise say.ClusterError(f"{words[0]} is missing on this machine") from None
    if log:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"$ {' '.join(words)}\n{done.stdout}{done.stderr}", encoding="utf-8")
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-25:])
        where = f"\n(all of it: {log})" if log else ""
        raise say.ClusterError(f"`{' '.join(words[:8])}` failed ({done.returncode}):\n{tail}{where}")
    return done.stdout


def persistently(work: Callable[[], Made]) -> Made:
    """What `work` gives, which downloads: a registry or a connection that fails once is asked again.

    Raises:
        ClusterError: it failed every time; the last one's.
    """
    for pause in RETRY_PAUSES:
        try:
            return work()
        except say.ClusterError as error:
            say.line(f"\n    this is tried again in {pause:g} s: {error}")
            time.sleep(pause)
    return work()


def succeeds(argv: Sequence[str | Path]) -> bool:
    """Whether a program is there and ends with 0; its output is dropped."""
    if not shutil.which(str(argv[0])):
        return False
    done = subprocess.run([str(word) for word in argv], capture_output=True, check=False)
    return done.returncode == 0


Check = Callable[[], bool]


def run_json(argv: Sequence[str | Path]) -> Any:
    """Run a program and parse its standard output."""
    return json.loads(run(argv))


def wait_until(what: str, ready: Callable[[], bool], seconds: float, every: float = 0.1) -> None:
    """Poll `ready` until it holds.

    Raises:
        ClusterError: it did not within `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise say.ClusterError(f"{what}: not within {seconds:.0f} s")
        time.sleep(every)


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """One at a time on this machine: a second caller waits, then mostly finds the work done."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
