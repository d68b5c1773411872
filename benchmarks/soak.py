"""Many clients for a long time on one relay: memory stays flat, and nothing is left when they have gone.

    python benchmarks/soak.py [--minutes 60] [--clients 64] [--rate 300]

Clients call, vanish in the middle of calls, end their sessions, listen, and some read slowly. The exit code
is 1 if the memory in the last quarter is more than 5 % above that of the second, if an answer was wrong, or
if a task, a socket, a session or a process is left.
"""

import argparse
import asyncio
import contextlib
import json
import random
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from clusterkit.leanmcp import Endpoint, HttpError, McpClient, RpcError, read_head, shut
from relaykit.pod import TOKEN, Pod

SERVER = Path(__file__).resolve().parents[1] / "tests" / "e2e" / "servers" / "raw.py"
SAMPLE_SECONDS = 2.0
SETTLE_SECONDS = 30.0
GROWTH = 1.05
SLOW_SHARE = 0.01
BIG_BYTES = 4 << 20
GONE = (
    "mcp_relay_clients", "mcp_relay_calls_in_flight", "mcp_relay_streams", "mcp_relay_events_queued",
    "mcp_relay_http_connections", "mcp_relay_server_requests_open",
)  # fmt: skip


@dataclass
class Tally:
    """What happened, and the relay's and the launcher's MiB every few seconds."""

    done: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    relay: list[float] = field(default_factory=list)
    launcher: list[float] = field(default_factory=list)

    def count(self, what: str) -> None:
        self.done[what] = self.done.get(what, 0) + 1


class Visitor:
    """One client, which does one thing after the other until the end."""

    def __init__(self, port: int, tally: Tally, chance: random.Random, *, slow: bool) -> None:
        self.endpoint = Endpoint("127.0.0.1", port, f"127.0.0.1:{port}")
        self.tally = tally
        self.chance = chance
        self.slow = slow
        self.client = self.new()

    def new(self) -> McpClient:
        return McpClient(self.endpoint, TOKEN, keep_alive=True)

    async def run(self, until: float, pause: float) -> None:
        await self.client.connect()
        while time.monotonic() < until:
            act = self.chance.choices(
                (self.call, self.vanish, self.leave, self.listen, self.read_slowly),
                (90, 5, 2, 2, 100 if self.slow else 0),
            )[0]
            try:
                await act()
            except (OSError, asyncio.IncompleteReadError, RpcError, HttpError, TimeoutError) as error:
                self.tally.wrong.append(f"{act.__name__}: {error!r}")
            self.tally.count(act.__name__)
            await asyncio.sleep(self.chance.uniform(0, 2 * pause))
        await self.leave(again=False)

    async def call(self) -> None:
        text = str(self.chance.random())
        result = await self.client.request("tools/call", {"name": "echo", "arguments": {"text": text}})
        if result["content"][0]["text"] != text:
            self.tally.wrong.append(f"echo of {text}: {result}")

    async def vanish(self) -> None:
        """Go while the server works."""
        _, writer = await self._send("tools/call", {"name": "sleep", "arguments": {"seconds": 0.2}})
        await asyncio.sleep(self.chance.uniform(0, 0.1))
        writer.transport.abort()

    async def leave(self, *, again: bool = True) -> None:
        """End the session, and begin another."""
        await self.client.raw("DELETE")
        await self.client.http.close()
        self.client = self.new()
        if again:
            await self.client.connect()

    async def listen(self) -> None:
        """Open the session's stream for a while."""
        headers = {**self.client.headers, "accept": "text/event-stream"}
        reader, writer = await self.client.http.send("GET", headers, b"")
        await read_head(reader)
        await asyncio.sleep(self.chance.uniform(0, 1))
        await shut(writer)

    async def read_slowly(self) -> None:
        """Take a large answer piece by piece; now and then not to its end."""
        reader, writer = await self._send("tools/call", {"name": "big", "arguments": {"bytes": BIG_BYTES}})
        rest = BIG_BYTES if self.chance.random() < 0.8 else BIG_BYTES // 3
        while rest > 0 and (piece := await reader.read(128 * 1024)):
            rest -= len(piece)
            await asyncio.sleep(0.1)
        writer.transport.abort()

    async def _send(self, method: str, params: dict[str, Any]) -> Any:
        self.client.next_id += 1
        message = {"jsonrpc": "2.0", "id": self.client.next_id, "method": method, "params": params}
        return await self.client.http.send("POST", self.client.headers, json.dumps(message).encode())


async def metrics(pod: Pod) -> dict[str, float]:
    text = (await pod.admin("GET", "/metrics")).text
    rows = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in rows}


def standing(pod: Pod) -> dict[str, int]:
    """What must be the same before and after: open files, processes."""
    assert pod.process is not None
    assert pod.launcher is not None
    relay, launcher = psutil.Process(pod.process.pid), psutil.Process(pod.launcher.pid)
    return {
        "files of the relay": relay.num_fds(),
        "files of the launcher": launcher.num_fds(),
        "processes of the relay": len(relay.children(recursive=True)),
        "processes of the launcher": len(launcher.children(recursive=True)),
    }


async def sample(pod: Pod, tally: Tally) -> None:
    assert pod.process is not None
    assert pod.launcher is not None
    relay, launcher = psutil.Process(pod.process.pid), psutil.Process(pod.launcher.pid)
    while True:
        tally.relay.append(relay.memory_info().rss / 2**20)
        tally.launcher.append(launcher.memory_info().rss / 2**20)
        await asyncio.sleep(SAMPLE_SECONDS)


async def left(pod: Pod, before: dict[str, float]) -> list[str]:
    """What is still there after some time to go."""
    end = time.monotonic() + SETTLE_SECONDS
    while True:
        now = {**await metrics(pod), **standing(pod)}
        more = [name for name in GONE if now[name] > 0]
        more += [name for name in before if now[name] > before[name]]
        if not more or time.monotonic() > end:
            return [f"{name}: {now[name]:g}, before {before.get(name, 0):g}" for name in more]
        await asyncio.sleep(1)


def growth(samples: list[float]) -> tuple[float, float]:
    """The mean of the second quarter and of the last."""
    quarter = max(1, len(samples) // 4)
    return statistics.mean(samples[quarter : 2 * quarter]), statistics.mean(samples[-quarter:])


async def soak(options: argparse.Namespace, folder: Path) -> list[str]:
    """Run it all; gives what was violated."""
    pod, tally = Pod(folder), Tally()
    pod.launch(command=[sys.executable, str(SERVER)])
    try:
        await pod.spawn_relay()
        await pod.until("Connected")
        early = await metrics(pod)
        before = {"mcp_relay_tasks": early["mcp_relay_tasks"], **standing(pod)}
        sampling = asyncio.create_task(sample(pod, tally))
        slow = max(1, round(options.clients * SLOW_SHARE))
        visitors = [
            Visitor(pod.port, tally, random.Random(number), slow=number < slow)  # noqa: S311 -- no secret
            for number in range(options.clients)
        ]
        until = time.monotonic() + options.minutes * 60
        pause = options.clients / options.rate
        await asyncio.gather(*(visitor.run(until, pause) for visitor in visitors))
        sampling.cancel()
        violations = [*tally.wrong[:20], *await left(pod, before)]
    finally:
        await pod.stop()
    return violations + report(tally)


def report(tally: Tally) -> list[str]:
    """Print the figures; gives the processes whose memory grew."""
    grew = []
    print(", ".join(f"{what} {number}" for what, number in sorted(tally.done.items())))
    for name, samples in (("relay", tally.relay), ("launcher", tally.launcher)):
        second, last = growth(samples)
        most = max(samples)
        print(f"{name}: {second:.1f} MiB in the second quarter, {last:.1f} in the last, at most {most:.1f}")
        if last > second * GROWTH:
            grew.append(f"memory of the {name} grew from {second:.1f} to {last:.1f} MiB")
    return grew


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--rate", type=float, default=300, help="things done a second, by all clients")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(KeyboardInterrupt):
        violations = asyncio.run(soak(options, Path(folder)))
        for violation in violations:
            print(f"VIOLATED: {violation}")
        return 1 if violations else 0
    return 130


if __name__ == "__main__":
    sys.exit(main())
