"""The relay with launcher and server on this machine, through the command that people use."""

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from suitekit import fixtures, stateless

ROOT = Path(__file__).resolve().parents[3]
LEGACY, MODERN = "suitekit.server", "suitekit.stateless"
"""The fixture servers: with sessions, and without."""
CAPABILITIES = ("sampling", "elicitation")
START_SECONDS = 20.0
STEP_SECONDS = 0.02
END_SECONDS = 15.0


class StartError(Exception):
    """The relay did not start; the message has what it wrote."""


@dataclass(frozen=True, slots=True)
class Local:
    """A running relay."""

    url: str
    pid: int
    command: tuple[str, ...]

    @property
    def tools(self) -> int:
        """How many tools the server has."""
        return len(stateless.TOOLS if MODERN in self.command else fixtures.TOOLS)

    def servers(self) -> set[psutil.Process]:
        """Every server process behind it; equal by id and start, whatever the clock is set to."""
        children = psutil.Process(self.pid).children(recursive=True)
        return {child for child in children if _words(child) == [*self.command]}

    def started_servers(self) -> set[psutil.Process]:
        """The same, as soon as there is one; empty when there is none in time."""
        end = time.monotonic() + START_SECONDS
        while not (found := self.servers()) and time.monotonic() < end:
            time.sleep(STEP_SECONDS)
        return found


def _words(process: psutil.Process) -> list[str]:
    """The command line; none of a process that has just ended."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


@contextlib.contextmanager
def running(server: str = LEGACY, protocol: str = "Auto") -> Iterator[Local]:
    """Start a relay for a fixture server; it is ended with everything it started.

    Raises:
        StartError: it did not announce its URL in time.

    """
    declared = [word for name in CAPABILITIES for word in ("--client-capability", name)]
    served = (sys.executable, "-m", server)
    spoken = ["--protocol", protocol]
    command = [sys.executable, "-m", "mcp_sidecar", "local", *spoken, *declared, "--", *served]
    places = os.pathsep.join((str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")))
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": places},
            stdout=subprocess.PIPE,
            stderr=log,
        )
        with process:
            try:
                yield Local(_announced(process), process.pid, served)
            except StartError as error:
                log.seek(0)
                raise StartError(f"{error}: {log.read().decode(errors='replace').strip()}") from error
            finally:
                _end(process)


def _announced(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
    line = process.stdout.readline() if ready else b""
    if not line:
        raise StartError(f"The relay announced nothing within {START_SECONDS:g} seconds")
    return str(json.loads(line)["url"])


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
