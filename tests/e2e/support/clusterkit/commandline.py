"""`mcpsrv` as a process, as a person or a script runs it."""

import asyncio
import json
import sys
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


async def start(*words: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    # A shell starts what runs in the background with SIGINT ignored, and that is inherited.
    command = ["env", "--default-signal=INT", sys.executable, "-m", "mcpsrv", *words]
    return await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)


async def mcpsrv(namespace: str, *words: str, stdin: str = "", within: float = 120) -> Done:
    process = await start(*words, "-n", namespace)
    try:
        async with asyncio.timeout(within):
            out, err = await process.communicate(stdin.encode())
    finally:
        if process.returncode is None:
            process.kill()
    return Done(process.returncode or 0, out.decode(), err.decode())
