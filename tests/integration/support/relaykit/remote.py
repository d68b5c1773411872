"""A relay in front of a remote server: that server as a process, and the relay in the test's own."""

import asyncio
import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from mcp_relay_api.status import RelayStatus
from mcp_sidecar.core.target import Target, parse
from relaykit.pod import Pod
from relaykit.ports import free_port
from relaykit.waiting import eventually

SERVER = Path(__file__).with_name("remote_server.py")
QUICK = (0.05, 0.1, 0.2)
Json = dict[str, Any]


def target(url: str, **changes: Any) -> Target:
    """What the relay is told of a server, with quick retries."""
    origin, path = parse(url)
    return dataclasses.replace(Target(origin, path, backoff=QUICK, slow=0.5), **changes)


class Far:
    """The server; `start` again after `kill` takes the same port, and knows nothing."""

    def __init__(self, *certificate: str) -> None:
        self.port = free_port()
        self._certificate = certificate
        self._process: subprocess.Popen[bytes] | None = None
        self._http = httpx.AsyncClient(trust_env=False, verify=False, timeout=10)  # noqa: S501 - what is tested is the relay
        self.control_now: Json = {}

    @property
    def base(self) -> str:
        return f"{'https' if self._certificate else 'http'}://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.base}/mcp"

    async def start(self) -> None:
        arguments = [sys.executable, str(SERVER), str(self.port), *self._certificate]
        self._process = await asyncio.to_thread(subprocess.Popen, arguments, stdin=subprocess.DEVNULL)
        await eventually(self._answers, 20)
        if self.control_now:
            await self.control(**self.control_now)

    async def _answers(self) -> bool:
        try:
            return (await self._http.get(f"{self.base}/stats")).status_code == 200
        except httpx.TransportError:
            return False

    async def control(self, **wanted: Any) -> None:
        self.control_now = wanted
        assert (await self._http.post(f"{self.base}/control", json=wanted)).status_code == 200

    async def stats(self) -> Json:
        told = (await self._http.get(f"{self.base}/stats")).json()
        assert isinstance(told, dict)
        return told

    async def count(self, method: str) -> int:
        """How often a method came."""
        return int((await self.stats())["seen"].count(method))

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    async def stop(self) -> None:
        self.kill()
        await self._http.aclose()


def pod_for(directory: Path, where: Target, **settings: Any) -> Pod:
    """A pod whose relay is the client of that server; not started."""
    files = directory / "secrets"
    files.mkdir(parents=True, exist_ok=True)
    return Pod(directory, remote=where, secrets_dir=files, **settings)


async def listed(pod: Pod, *names: str) -> RelayStatus:
    """The status once it shows these tools."""

    async def shown() -> bool:
        return tuple(tool.name for tool in (await pod.status()).tools) == (names or ("echo",))

    await eventually(shown)
    return await pod.status()


async def told(pod: Pod, text: str) -> None:
    """Wait until the status tells an error with this text."""

    async def shown() -> bool:
        error = (await pod.status()).error
        return error is not None and text in error.message

    await eventually(shown, 15)
