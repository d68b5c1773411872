"""Running a command's coroutine: signals cancel it, errors become messages and exit codes."""

import asyncio
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import typer

from mcpsrv.core.errors import CliError, ExitCode
from mcpsrv.terminal import Terminal


def run(terminal: Terminal, command: Coroutine[Any, Any, ExitCode | None]) -> None:
    """Runs it and ends the process with its exit code. Ctrl-C and SIGTERM let it clean up first."""
    try:
        code = asyncio.run(_signalled(command))
    except CliError as error:
        terminal.error(str(error))
        raise typer.Exit(error.code) from error
    except KeyboardInterrupt as error:
        raise typer.Exit(ExitCode.INTERRUPTED) from error
    except asyncio.CancelledError as error:
        raise typer.Exit(ExitCode.TERMINATED) from error
    except BrokenPipeError as error:
        # Who read our output has gone, as `head` does; Python must not flush to it at the end either.
        sys.stdout = None
        raise typer.Exit(ExitCode.OK) from error
    raise typer.Exit(code or ExitCode.OK)


async def _signalled(command: Coroutine[Any, Any, ExitCode | None]) -> ExitCode | None:
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # Windows has no handlers in its loop.
        with suppress(NotImplementedError):
            if number is not None and task is not None:
                loop.add_signal_handler(number, task.cancel)
    return await command
