"""What a relay gives back once it has started."""

import asyncio
import errno
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from mcp_sidecar import memory


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("7f00a000-7f00c000 r-xp 00001000 fe:01 99  /usr/lib/libx.so.3", [(0x7F00A000, 0x2000)]),
        ("7f00a000-7f00c000 r-xp 00001000 fe:01 99  /opt/with space/libx.so", [(0x7F00A000, 0x2000)]),
        (
            "7f00a000-7f00c000 r--p 00001000 fe:01 99  /usr/lib/libx.so.3",
            [],
        ),  # written to while it was linked
        ("7f00a000-7f00c000 rwxp 00001000 fe:01 99  /usr/lib/libx.so.3", []),
        ("7f00a000-7f00c000 r-xs 00001000 fe:01 99  /usr/lib/libx.so.3", []),
        ("7f00a000-7f00c000 r-xp 00001000 fe:01 99  /usr/lib/libx.so.3 (deleted)", []),
        ("7f00a000-7f00c000 r-xp 00000000 00:00 0", []),  # made by the process itself
        ("7fff0000-7fff2000 r-xp 00000000 00:00 0  [vdso]", []),
    ],
)
def test_only_code_that_equals_its_file_is_given_back(line: str, found: list[tuple[int, int]]) -> None:
    facts = [
        "Size: 8 kB",
        "Anonymous:             0 kB",
        "AnonHugePages: 0 kB",
        "Swap:                  0 kB",
    ]
    lines = [f"{text}\n" for text in (line, *facts, "7fff0000-7fff2000 ---p 00000000 00:00 0", *facts)]
    assert list(memory.code(lines)) == found
    for name in ("Anonymous:", "Swap:"):
        changed = [text.replace(" 0 kB", " 4 kB") if text.startswith(name) else text for text in lines]
        assert list(memory.code(changed)) == []


def test_code_that_was_changed_after_it_was_loaded_stays_as_it_is(tmp_path: Path) -> None:
    program = """
import ctypes, os, sys
from mcp_sidecar import memory
library = ctypes.CDLL(None)
library.mmap.restype = ctypes.c_void_p
READ, WRITE, EXECUTE, PRIVATE = 1, 2, 4, 2
file = os.open(sys.argv[1], os.O_RDONLY)
address = library.mmap(None, ctypes.c_size_t(4096), READ | WRITE, PRIVATE, file, ctypes.c_long(0))
ctypes.memset(address, ord("b"), 1)
assert not library.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(4096), READ | EXECUTE)
memory.release_code()
sys.stdout.buffer.write(ctypes.string_at(address, 2))
"""
    loaded = tmp_path / "patched.so"
    loaded.write_bytes(b"a" * 4096)
    ran = subprocess.run([sys.executable, "-c", program, str(loaded)], capture_output=True, check=True)
    assert ran.stdout == b"ba"


def test_a_process_runs_on_without_the_code_that_its_start_needed() -> None:
    program = """
import json, re, ssl, cryptography.x509
from pathlib import Path
from mcp_sidecar import memory
def resident():
    return int(re.search(r"RssFile:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
before = resident()
memory.release_code()
after = resident()
print(json.dumps([before, after, ssl.create_default_context().check_hostname]))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    before, after, works = json.loads(ran.stdout)
    assert after < before * 0.7
    assert works


def test_code_is_released_again_after_it_could_not_be(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[tuple[float, Callable[[], None]]] = []
    loop = SimpleNamespace(call_later=lambda delay, work: planned.append((delay, work)))

    def full() -> None:
        raise OSError(errno.EMFILE, "no descriptor is left")

    monkeypatch.setattr(memory, "release_code", full)
    memory.release_code_now_and_then(cast("asyncio.AbstractEventLoop", loop))
    with pytest.raises(OSError, match="descriptor"):
        planned[0][1]()
    assert [delay for delay, _ in planned] == [memory.START_SECONDS, memory.RELEASE_SECONDS]
