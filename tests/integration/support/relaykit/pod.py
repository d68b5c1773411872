"""A pod without Kubernetes: the real launcher as a process, the relay in this process or in its own."""

import asyncio
import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from mcp_relay_api.status import RelayStatus
from mcp_sidecar.service import Service
from mcp_sidecar.settings import Settings
from mcp_sidecar.web.server import listen
from relaykit.client import NO_TLS, Client
from relaykit.ports import free_port
from relaykit.waiting import eventually

ROOT = Path(__file__).parents[4]
SCRIPTED = Path(__file__).with_name("scripted.py")
STATELESS = Path(__file__).with_name("stateless_server.py")
TOKEN, ADMIN_TOKEN = "client-token", "admin-token"
ADMIN = {"authorization": f"Bearer {ADMIN_TOKEN}"}


def launcher_path() -> Path:
    return Path(os.environ.get("MCP_LAUNCHER", ROOT / "build" / "mcp-launcher"))


class Pod:
    """Start with `launch` (the server) and `relay`; every client it made is closed by `stop`."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.directory = directory
        self.socket = directory / "server.sock"
        self.launcher: subprocess.Popen[bytes] | None = None
        self.service: Service | None = None
        self.process: asyncio.subprocess.Process | None = None
        self._serving: asyncio.Task[None] | None = None
        self._clients: list[Client] = []
        self._admin = httpx.AsyncClient(timeout=20, trust_env=False, verify=NO_TLS)
        self.port, self.admin_port = free_port(), free_port()
        chosen: dict[str, Any] = {
            "server_name": "demo",
            "server_uid": "uid-1",
            "signing_key": b"k" * 32,
            "token": TOKEN.encode(),
            "admin_token": ADMIN_TOKEN.encode(),
            "socket_path": str(self.socket),
            "host": "127.0.0.1",
            "control_path": str(directory / "control.sock"),
            "state_dir": directory / "state",
            "port": self.port,
            "admin_port": self.admin_port,
        }
        self.settings = Settings(**(chosen | settings))

    def configure(self, **changes: Any) -> None:
        """Change settings before the relay starts."""
        self.settings = dataclasses.replace(self.settings, **changes)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def admin_url(self) -> str:
        return f"http://127.0.0.1:{self.admin_port}"

    def launch(
        self, mode: str = "answer", *, command: list[str] | None = None, flags: tuple[str, ...] = ()
    ) -> None:
        """Start the launcher with the scripted server; for `stateless[:MODE]` with the other one."""
        kind, _, rest = mode.partition(":")
        script = [str(STATELESS), rest or "answer"] if kind == "stateless" else [str(SCRIPTED), mode]
        log = self.directory / "termination"
        control = (
            "--control",
            self.settings.control_path,
            "--max-processes",
            str(self.settings.max_processes),
        )
        self.launcher = subprocess.Popen(
            [
                str(launcher_path()), "run", "--socket", str(self.socket), "--termination-log", str(log),
                "--max-line-bytes", str(self.settings.max_message_bytes),
                *(control if self.settings.session_mode == "PerClient" else ()), *flags, "--",
                *(command or [sys.executable, *script]),
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    async def relay(self) -> None:
        """Start the relay in this process."""
        listeners = [listen("127.0.0.1", port) for port in (self.port, self.admin_port)]
        self.service = Service(self.settings, *listeners)
        ready = asyncio.Event()
        self._serving = asyncio.get_running_loop().create_task(self.service.run(ready.set))
        async with asyncio.timeout(5):
            await ready.wait()

    async def stop_relay(self) -> None:
        if self.service is not None and self._serving is not None:
            self.service.stop()
            async with asyncio.timeout(10):
                await self._serving
            self.service = None

    def environment(self) -> dict[str, str]:
        """What the operator sets for the relay's container, and where things are on this machine."""
        folder = self.directory / "secrets"
        folder.mkdir(exist_ok=True)
        for name, value in (("token", TOKEN), ("admin-token", ADMIN_TOKEN), ("signing-key", "k" * 32)):
            (folder / name).write_text(value)
        return {
            **os.environ,
            "MCP_RELAY_SERVER_NAME": "demo",
            "MCP_RELAY_SERVER_NAMESPACE": "default",
            "MCP_RELAY_SERVER_UID": "uid-1",
            "MCP_RELAY_SECRETS_DIR": str(folder),
            "MCP_RELAY_STATE_DIR": str(self.directory / "state"),
            "MCP_RELAY_SOCKET": str(self.socket),
            "MCP_RELAY_HOST": "127.0.0.1",
            "MCP_RELAY_PORT": str(self.port),
            "MCP_RELAY_ADMIN_PORT": str(self.admin_port),
            "MCP_RELAY_PROTOCOL": self.settings.protocol,
            "MCP_RELAY_REMOTE": self._remote(),
            "MCP_RELAY_SESSION_MODE": self.settings.session_mode,
            "MCP_RELAY_MAX_PROCESSES": str(self.settings.max_processes),
            "MCP_RELAY_CONTROL": self.settings.control_path,
        }

    def _remote(self) -> str:
        remote = self.settings.remote
        if remote is None:
            return ""
        headers = [dataclasses.asdict(header) for header in remote.headers]
        told = {"url": f"{remote.origin}{remote.path}", "transport": remote.transport, "headers": headers}
        return json.dumps(told | {"caFile": remote.ca_file, "backoffSeconds": remote.backoff})

    async def spawn_relay(self) -> None:
        """Start the relay as in the pod: its own process, settings from the environment."""
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mcp_sidecar"), env=self.environment(), stderr=asyncio.subprocess.DEVNULL
        )
        await eventually(self._answers, 10)

    async def _answers(self) -> bool:
        try:
            return (await self._admin.get(f"{self.admin_url}/healthz")).status_code == 200
        except httpx.TransportError:
            return False

    async def kill_relay(self) -> None:
        assert self.process is not None
        self.process.kill()
        await self.process.wait()

    async def status(self, after: int | None = None, wait: float = 0) -> RelayStatus:
        """One status document, held against the contract: nothing missing, nothing unknown."""
        query = {"wait": wait} | ({} if after is None else {"after": after})
        reply = await self._admin.get(f"{self.admin_url}/status", params=query, headers=ADMIN)
        assert reply.status_code == 200, reply.text
        return validated(reply.content)

    async def until(self, state: str, seconds: float = 10) -> RelayStatus:
        """Wait for a state by long-poll."""
        async with asyncio.timeout(seconds):
            status = await self.status()
            while status.state != state:
                status = await self.status(status.revision, 5)
        return status

    async def settled(self) -> RelayStatus:
        """Wait until it is connected and knows the tools, which a slow server tells one revision later."""
        status = await self.until("Connected")
        async with asyncio.timeout(10):
            while status.tool_count is None:
                status = await self.status(status.revision, 5)
        return status

    async def in_flight(self, calls: int) -> None:
        """Wait until that many calls were sent to the server and not answered."""

        async def reached() -> bool:
            metrics = (await self.admin("GET", "/metrics")).text
            return f"\nmcp_relay_calls_in_flight {calls}.0\n" in metrics

        await eventually(reached)

    async def holding(self, calls: int = 1) -> Callable[[], None]:
        """Wait until that many calls are in flight; gives what lets the server answer those of `hold`."""
        await self.in_flight(calls)
        process = (await self.status()).process
        assert process is not None
        return lambda: let_go(process.pid)

    async def admin(self, method: str, path: str, **headers: str) -> httpx.Response:
        return await self._admin.request(method, self.admin_url + path, headers=headers)

    def client(self, **options: Any) -> Client:
        """A client that has not connected yet."""
        client = Client(self.url, **{"token": TOKEN, **options})
        self._clients.append(client)
        return client

    async def connected(self, **options: Any) -> Client:
        """A client with a session."""
        return await self.client(**options).connect()

    async def stop(self) -> None:
        for client in self._clients:
            await client.http.aclose()
        await self._admin.aclose()
        await self.stop_relay()
        if self.process is not None and self.process.returncode is None:
            self.process.terminate()
            await self.process.wait()
        if self.launcher is not None:
            self.launcher.kill()
            self.launcher.wait()


def validated(document: bytes) -> RelayStatus:
    """Hold a document against the contract, unknown keys included."""
    status = RelayStatus.model_validate_json(document)
    raw = json.loads(document)
    assert json.loads(status.model_dump_json(by_alias=True)).keys() == raw.keys()
    for part in ("process", "exit", "error", "session"):
        known = getattr(status, part)
        if known is not None:
            assert known.model_dump(by_alias=True).keys() == raw[part].keys(), part
    return status


def let_go(pid: int) -> None:
    """Let a server process answer the calls of its tool `hold`, also those to come."""
    os.kill(pid, signal.SIGUSR1)


def kill_process(status: RelayStatus) -> None:
    """Kill the server process itself."""
    assert status.process is not None
    os.kill(status.process.pid, signal.SIGKILL)
