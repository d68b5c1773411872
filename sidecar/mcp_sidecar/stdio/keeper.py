"""More processes of the server's command, asked for on the launcher's control socket.

One connection is one request, a line of JSON; the answers are lines, too. The connection that a process was
asked for on tells of its end; when it breaks, the process goes on.
"""

import asyncio
from pathlib import Path

from mcp_sidecar.core import jsontext

SUFFIX = ".process"


class KeeperError(Exception):
    """The launcher did not do what it was asked for; the text says why."""


class Keeper:
    """Asks at the socket `path`; beside it stand the sockets of the processes."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def socket(self, name: str) -> str:
        """Path of the socket on which the launcher of this process serves it."""
        return str(self._path.with_name(name + SUFFIX))

    def running(self) -> list[str]:
        """Names of the processes that run: the launcher removes the socket of one that has ended."""
        return sorted(path.name.removesuffix(SUFFIX) for path in self._path.parent.glob(f"*{SUFFIX}"))

    async def run(self, name: str) -> int:
        """Start a process and wait for its end; gives its exit code.

        Raises:
            KeeperError: it cannot be started, or the launcher ended.

        """
        return await self._ask("start", name)

    async def watch(self, name: str) -> int:
        """Wait for the end of a process that was started before; as `run`."""
        return await self._ask("watch", name)

    async def stop(self, name: str) -> int:
        """End a process, in good order if it lets, and wait for that; as `run`."""
        return await self._ask("stop", name)

    async def _ask(self, event: str, name: str) -> int:
        try:
            reader, writer = await asyncio.open_unix_connection(self._path)
        except OSError as error:
            raise KeeperError(f"the launcher cannot be asked: {error.strerror or error}") from error
        try:
            writer.write(jsontext.dumps({"event": event, "id": name}) + b"\n")
            while line := await reader.readline():
                told = jsontext.loads(line)
                if told.get("event") == "ended":
                    return int(told["exitCode"])
                if told.get("event") == "refused":
                    raise KeeperError(str(told.get("message")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise KeeperError(f"the launcher answers with what cannot be read: {error}") from error
        finally:
            writer.close()
        raise KeeperError("the launcher has ended")
