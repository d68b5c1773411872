"""A stdio MCP server on the standard library alone, whose options and tools produce faults on demand.

It speaks JSON-RPC without an SDK, so that what a test sees is the work of launcher and relay, and it
counts what it was sent: `stats` tells how often `initialize` came and which calls were cancelled.
"""

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

LATEST = "2025-11-25"
SERVER_INFO = {"name": "raw", "version": "1"}
CAPABILITIES = {"tools": {"listChanged": True}, "experimental": {"vendor/x": {"a": 1}}}
STARTED = time.time()

Json = dict[str, Any]
# Made once: what a call costs the server is missing to the bridge that a benchmark measures beside it.
encode = json.JSONEncoder(separators=(",", ":")).encode


class ToolError(Exception):
    """The tool answers with `isError` and this text."""


class Wire:
    """Writes whole lines to stdout from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def send(self, message: Json) -> None:
        data = encode({"jsonrpc": "2.0", **message}).encode() + b"\n"
        with self._lock:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()


def text(value: str) -> Json:
    return {"content": [{"type": "text", "text": value}]}


class Server:
    """One process's state: what it was sent, and the tools that act on it."""

    def __init__(self, wire: Wire, extra_tools: int = 0) -> None:
        self.wire = wire
        self.extra_tools = extra_tools
        self.initializes = 0
        self.counter = 0
        self.cancelled: list[Any] = []
        self.timers: dict[Any, threading.Timer] = {}
        self.hoard: list[bytearray] = []
        self.tools: dict[str, Callable[[Json], str]] = {
            "echo": lambda a: str(a.get("text", "")),
            "big": lambda a: "x" * int(a["bytes"]),
            "count": self.count,
            "stats": lambda _: json.dumps(self.stats()),
            "environment": environment,
            "secret": secret_digest,
            "identity": identity,
            "write": write_file,
            "spawn": spawn,
            "die": die,
            "allocate": self.allocate,
            "complain": complain,
            "run": run_code,
            "change": self.change,
        }

    def stats(self) -> Json:
        return {
            "pid": os.getpid(),
            "started": STARTED,
            "initializes": self.initializes,
            "cancelled": len(self.cancelled),
        }

    def count(self, _: Json) -> str:
        self.counter += 1
        return str(self.counter)

    def allocate(self, arguments: Json) -> str:
        """Take memory and keep it; with `seconds`, little by little beside the other calls."""

        def take() -> None:
            for _ in range(int(arguments["mib"])):
                self.hoard.append(bytearray(os.urandom(1 << 20)))
                time.sleep(pause)

        pause = float(arguments.get("seconds", 0)) / int(arguments["mib"])
        if not pause:
            take()
            return "allocated"
        threading.Thread(target=take, daemon=True).start()
        return "allocating"

    def change(self, arguments: Json) -> str:
        """Add a tool and announce it `burst` times."""
        self.extra_tools += 1
        for _ in range(int(arguments.get("burst", 1))):
            self.wire.send({"method": "notifications/tools/list_changed"})
        return "changed"

    def listing(self) -> list[Json]:
        names = [*self.tools, "sleep", "record", *(f"extra-{n}" for n in range(self.extra_tools))]
        return [{"name": n, "description": f"The {n} tool", "inputSchema": {"type": "object"}} for n in names]

    def handle(self, message: Json) -> None:
        """Answer one message; notifications are never answered."""
        method, rid, params = message.get("method"), message.get("id"), message.get("params") or {}
        if rid is None:
            if method == "notifications/cancelled":
                self.cancel(params.get("requestId"))
            return
        if method == "tools/call" and params.get("name") in ("sleep", "record"):
            self.sleep(rid, params.get("arguments") or {})
            return
        try:
            answer = {"result": self.result(str(method), params)}
        except KeyError as error:
            answer = {"error": {"code": -32601, "message": f"unknown: {error}", "data": {"method": method}}}
        self.wire.send({"id": rid, **answer})

    def result(self, method: str, params: Json) -> Json:
        """The result of one request. Raises KeyError for a method or tool that does not exist."""
        if method == "initialize":
            self.initializes += 1
            asked = params.get("protocolVersion") or LATEST
            return {
                "protocolVersion": min(asked, LATEST),
                "capabilities": CAPABILITIES,
                "serverInfo": SERVER_INFO,
            }
        if method == "tools/list":
            return {"tools": self.listing()}
        if method == "ping":
            return {}
        if method != "tools/call":
            raise KeyError(method)
        try:
            return text(self.tools[params["name"]](params.get("arguments") or {}))
        except (ToolError, OSError, ValueError) as error:
            return {**text(str(error)), "isError": True}

    def sleep(self, rid: Any, arguments: Json) -> None:
        """Answer after `seconds`; a `token` is written into the journal first, and is the answer."""
        token = str(arguments.get("token", ""))
        if token:
            journal(token)

        def wake() -> None:
            self.timers.pop(rid, None)
            self.wire.send({"id": rid, "result": text(token or "slept")})

        seconds = float(arguments.get("seconds", 0 if token else 1))
        if not seconds:
            wake()
            return
        timer = threading.Timer(seconds, wake)
        timer.daemon = True
        self.timers[rid] = timer
        timer.start()

    def cancel(self, rid: Any) -> None:
        if timer := self.timers.pop(rid, None):
            timer.cancel()
            self.cancelled.append(rid)


def journal(token: str) -> None:
    """Append a line to the file `$JOURNAL`, whole even if the process dies the next moment."""
    with Path(os.environ["JOURNAL"]).open("ab", buffering=0) as file:
        file.write(token.encode() + b"\n")


def environment(arguments: Json) -> str:
    """Names of the environment's variables that start with `prefix`; never their values."""
    return json.dumps(sorted(n for n in os.environ if n.startswith(str(arguments.get("prefix", "")))))


def secret_digest(arguments: Json) -> str:
    """SHA-256 of a variable's value, so that the value itself never leaves the process."""
    value = os.environ.get(str(arguments.get("name", "FOO")))
    if value is None:
        raise ToolError("not set")
    return hashlib.sha256(value.encode()).hexdigest()


def identity(_: Json) -> str:
    """Who the process is, and which token files it can see."""
    token = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return json.dumps(
        {
            "uid": os.getuid(),
            "gid": os.getgid(),
            "serviceAccountToken": token.exists(),
            "mounts": mounts,
            "capabilities": status["CapEff"].strip(),
            "noNewPrivileges": status["NoNewPrivs"].strip(),
            "seccomp": status["Seccomp"].strip(),
            "cwd": str(Path.cwd()),
            "home": os.environ.get("HOME"),
        }
    )


def write_file(arguments: Json) -> str:
    """Write a small file in `directory` (`~` and variables expanded), which is made if need be."""
    directory = Path(os.path.expandvars(str(arguments["directory"]))).expanduser()
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "written-by-test").write_text("hello")
    return str(directory)


def spawn(arguments: Json) -> str:
    """Start a child that ignores SIGTERM and sleeps; `detached` puts it into its own session."""
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"
    child = subprocess.Popen(
        [sys.executable, "-c", code, *sys.argv[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=bool(arguments.get("detached")),
    )
    return str(child.pid)


def die(arguments: Json) -> str:
    """End the process in the middle of the call: by `signal` (a name) or with exit `code`."""
    if message := arguments.get("stderr"):
        print(message, file=sys.stderr, flush=True)
    if name := arguments.get("signal"):
        os.kill(os.getpid(), signal.Signals[str(name)])
        signal.pause()
    os._exit(int(arguments.get("code", 1)))


def complain(arguments: Json) -> str:
    """Write `bytes` bytes without a newline to stderr."""
    sys.stderr.write("e" * int(arguments.get("bytes", 1)))
    sys.stderr.flush()
    return "complained"


def run_code(arguments: Json) -> str:
    """What Python code prints that a hostile server would run; ended after `seconds`."""
    limit = float(arguments.get("seconds", 20))
    command = [sys.executable, "-c", str(arguments["code"]), *map(str, arguments.get("arguments", []))]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"not done after {limit} s") from None
    if done.returncode:
        raise ToolError(f"exit {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def messages() -> Iterator[Json]:
    for line in sys.stdin.buffer:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict):
            yield message


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--delay", type=float, default=0, help="seconds of start, told on stderr")
    options.add_argument(
        "--banner", action="store_true", help="a line that is no JSON before everything else"
    )
    options.add_argument("--noise", type=int, default=0, help="bytes on stderr before reading stdin")
    options.add_argument("--ignore-term", action="store_true", help="survive SIGTERM")
    options.add_argument("--ignore-eof", action="store_true", help="stay after the end of stdin")
    options.add_argument("--child", action="store_true", help="start a child that ignores SIGTERM")
    options.add_argument("--tools", type=int, default=0, help="number of further tools")
    options.add_argument("--mark", default="", help="ignored; names the process and its children")
    options.add_argument("--require", default="", help="exit with 1 unless this variable is set")
    return options


def prepare(options: argparse.Namespace) -> None:
    """What happens before the first message is read."""
    if options.require and options.require not in os.environ:
        sys.exit(f"{options.require} is not set")
    if options.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if options.banner:
        print("Starting the raw server, version 1", flush=True)
    if options.noise:
        complain({"bytes": options.noise})
    if options.child:
        spawn({})
    end = time.monotonic() + options.delay
    while (left := end - time.monotonic()) > 0:
        print(f"still starting, {left:.0f} s to go", file=sys.stderr, flush=True)
        time.sleep(min(1, left))


def main() -> None:
    options = parser().parse_args()
    prepare(options)
    server = Server(Wire(), options.tools)
    for message in messages():
        server.handle(message)
    while options.ignore_eof:
        time.sleep(3600)


if __name__ == "__main__":
    main()
