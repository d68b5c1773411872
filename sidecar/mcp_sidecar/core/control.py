"""What the launcher says, read so that no value of a wrong type or size can hurt.

The launcher is the relay's own program, but it lives in the server's container: what comes from there is read
like anything else from outside. A message without which nothing can be done is refused; any other value that
makes no sense is replaced by what is known anyway. Times are Unix seconds.
"""

from collections.abc import Mapping
from typing import Any

from mcp_relay_api import paths
from mcp_sidecar.core.document import (
    MAX_MESSAGE,
    MAX_NAME,
    MAX_PROGRESS,
    MAX_STDERR_TAIL,
    Exit,
    Process,
)
from mcp_sidecar.core.lines import Oversized

MAX_SIGNAL = 32
MAX_PID = 2**31
MAX_EXIT_CODE = 255
MAX_DRAIN_SECONDS = 600.0
_YEAR_2100 = 4_102_444_800.0


class ControlError(Exception):
    """A message that nothing can be done with; the text says why."""


def process(message: Mapping[str, Any], now: float) -> Process:
    """The process that `hello` introduces.

    Raises:
        ControlError: it has no incarnation to know it by.

    """
    incarnation = message.get("incarnation")
    if not isinstance(incarnation, str) or not 0 < len(incarnation) <= MAX_NAME:
        raise ControlError(f"hello without a usable incarnation: {str(incarnation)[:MAX_NAME]!r}")
    started = _number(message.get("startTime"), 1.0, _YEAR_2100, now)
    return Process(incarnation, int(_number(message.get("pid"), 0, MAX_PID, 0)), float(started))


def lines_taken(message: Mapping[str, Any]) -> int | None:
    """How many lines the launcher took before `hello`, from all connections; None: it does not say."""
    count = message.get("linesTaken")
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def closed_pipe(message: Mapping[str, Any]) -> str:
    """Which pipe the process in `hello` has closed, as a reason of the contract; empty for none."""
    if message.get("stdoutClosed") is True:
        return paths.REASON_STDOUT_CLOSED
    return paths.REASON_STDIN_CLOSED if message.get("stdinClosed") is True else ""


def ended(message: Mapping[str, Any], now: float) -> Exit:
    """How the process ended, from `exit`; that it did is sure, whatever else is wrong with the message."""
    signal = message.get("signal")
    return Exit(
        exit_code=int(_number(message.get("exitCode"), 0, MAX_EXIT_CODE, MAX_EXIT_CODE)),
        signal=signal if isinstance(signal, str) and len(signal) <= MAX_SIGNAL else None,
        reason=_text(message.get("reason"))[:MAX_NAME] or "Exited",
        message=_text(message.get("message"))[:MAX_MESSAGE],
        time=float(_number(message.get("time"), 1.0, _YEAR_2100, now)),
        stderr_tail=_text(message.get("stderrTail"))[-MAX_STDERR_TAIL:],
    )


def progress(message: Mapping[str, Any]) -> str:
    """How the start gets on, in the server's words."""
    return _text(message.get("line"))[: MAX_PROGRESS + 1]


def drain_seconds(message: Mapping[str, Any]) -> float:
    """How long calls may go on after `terminating`."""
    return float(_number(message.get("drainSeconds"), 0, MAX_DRAIN_SECONDS, 0))


def oversized(message: Mapping[str, Any]) -> Oversized:
    """What is known of a line that the launcher dropped."""
    size = int(_number(message.get("bytes"), 0, 2**53, 0))
    return Oversized(size, _bytes(message.get("head")), _bytes(message.get("tail")))


def _number(value: Any, low: float, high: float, default: float) -> float:
    """A number within bounds, both included; NaN is within none."""
    usable = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
    return value if usable else default


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _bytes(value: Any) -> bytes:
    return _text(value).encode("utf-8", "replace")
