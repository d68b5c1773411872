"""What the user sees: one line per step with its duration, and errors that name the cure."""

import contextlib
import sys
import time
from collections.abc import Iterator


class ClusterError(Exception):
    """Something the user can act on; the message says what."""


def line(text: str) -> None:
    """Print `text` for people. Standard output stays free for what commands answer (paths)."""
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    """Announce a step, then its duration in seconds, on one line."""
    print(f"==> {text} … ", end="", file=sys.stderr, flush=True)
    began = time.monotonic()
    try:
        yield
    except BaseException:
        line(f"failed after {time.monotonic() - began:.1f} s")
        raise
    line(f"{time.monotonic() - began:.1f} s")
