"""Memory that a running relay does not need: given back, or never kept."""

import asyncio
import ctypes
import gc
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from mcp_sidecar import log

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGE_BYTES = 1024 * 1024
_MADV_DONTNEED = 4
START_SECONDS = 1.0
RELEASE_SECONDS = 60.0
_MAPS = Path("/proc/self/smaps")
_WRITTEN = ("Anonymous:", "Swap:")
"""Fields of a mapping, in this order: what of it differs from its file, in memory and elsewhere."""
_HEXADECIMAL = frozenset("0123456789abcdef")


def tune() -> None:
    """Set the C library and the collector of cycles up for a relay. Called once everything is loaded."""
    _return_large_blocks()
    # What was loaded by now lives for ever, and calls make few cycles: collect seldom.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def _return_large_blocks() -> None:
    """Have large messages leave no trace.

    The C library raises the size from which memory comes from, and returns to, the system each time a larger
    block is freed: after one 32 MiB result all the next ones would stay in the heap. The free end of the heap
    goes back in large pieces only: else each read of a large message takes its memory from the system again.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):  # glibc; others do not adapt
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, _LARGE_BYTES)


def release_code_now_and_then(loop: asyncio.AbstractEventLoop) -> None:
    """Once the start is over, and every minute from then on, let go of code that is not being run."""

    def release() -> None:
        loop.call_later(RELEASE_SECONDS, release)  # first: this time it may not work
        release_code()

    loop.call_later(START_SECONDS, release)


def release_code() -> None:
    """Let go of the pages of libraries' code: a third of all that is resident, and most of it was run once.

    They are clean and belong to the page cache, from where those that are needed come back when they are run.
    Until then each relay would hold them in use, so that the system could not give them up for anything else.
    """
    library = ctypes.CDLL(None, use_errno=True)
    with _MAPS.open(encoding="utf-8", errors="replace", newline="\n") as maps:
        found = tuple(code(maps))
    for start, size in found:
        if library.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), _MADV_DONTNEED):
            log.event("code_not_released", logging.WARNING, error=os.strerror(ctypes.get_errno()))
            return


def code(maps: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Address and size in bytes of each mapping of a file's code, from the lines of proc_pid_smaps(5).

    Only of what nobody has written to, as text relocations, debuggers and some profilers do: pages that
    differ from their file would be lost.
    """
    span: tuple[int, int] | None = None
    for line in maps:
        if line[0] in _HEXADECIMAL:
            span = _span(line)
        elif span is not None and line.startswith(_WRITTEN):
            if not line.endswith(" 0 kB\n"):
                span = None
            elif line.startswith(_WRITTEN[-1]):
                yield span


def _span(line: str) -> tuple[int, int] | None:
    """Of the first line of a mapping: where it is, if it is code of a file that still has its name."""
    where, permissions, _offset, _device, _inode, *path = line.split(maxsplit=5)
    if permissions != "r-xp" or not path or path[0][0] != "/" or path[0].endswith(" (deleted)\n"):
        return None
    start, end = (int(bound, 16) for bound in where.split("-"))
    return start, end - start
