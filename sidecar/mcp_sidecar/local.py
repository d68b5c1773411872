"""The relay without a cluster: starts the launcher with the server's command and serves it here."""

import argparse
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from mcp_sidecar import log, service
from mcp_sidecar.core import methods, naming, opening
from mcp_sidecar.core.bucket import Limits
from mcp_sidecar.core.claims import Rules
from mcp_sidecar.settings import PER_CLIENT, SHARED, Settings
from mcp_sidecar.web.server import listen

LAUNCHER = "mcp-launcher"
ENV_LAUNCHER = "MCP_LAUNCHER"
LAUNCHER_END_SECONDS = 10.0
_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30}


class LauncherMissingError(Exception):
    """There is no launcher; the message names the cure."""


def main(arguments: list[str]) -> int:
    """Run until SIGTERM or SIGINT, or until the launcher ends, whose exit code this one is then."""
    parser = _parser()
    options = parser.parse_args(arguments)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command or not command[0]:
        parser.error("write the server's command after --")
    issued = (options.jwt_issuer, options.jwt_audience, options.jwks)
    if any(issued) and (options.token or not all(issued)):
        parser.error("--jwt-issuer, --jwt-audience and --jwks belong together, and take the place of --token")
    if options.process_memory_limit and not options.per_client:
        parser.error("--process-memory-limit needs --per-client: without it there is one process for all")
    log.configure()
    try:
        launcher = find_launcher()
        jwks = options.jwks.read_bytes() if options.jwks else b""
        listener = listen(options.host, options.port)
    except (LauncherMissingError, OSError) as error:
        sys.stderr.write(f"mcp_sidecar local: {error}\n")
        return 2
    port = listener.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="mcp-relay-") as directory:
        settings = replace(_settings(options, command, Path(directory), port), jwks=jwks)
        process = _launch(launcher, settings, command, options.process_memory_limit)
        pidfd = os.pidfd_open(process.pid)
        try:
            code = service.run(
                settings, listener, None, lambda: _announce(process, options.host, port), pidfd
            )
            ended = process.poll()
            return code if ended is None else _exit_code(ended)
        finally:
            os.close(pidfd)
            _end(process)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m mcp_sidecar local", description="Serve a stdio MCP server over HTTP."
    )
    parser.add_argument("--port", type=int, default=0, help="port to serve; 0 takes a free one (default)")
    parser.add_argument("--host", default="127.0.0.1", help="address to serve (default 127.0.0.1)")
    _add_clients(parser)
    _add_server(parser)
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="-- CMD ARGS", help="the server's command"
    )
    return parser


def _add_clients(parser: argparse.ArgumentParser) -> None:
    """Who may call, by which name and how often."""
    parser.add_argument("--token", help="bearer token that clients must send (default: none)")
    parser.add_argument(
        "--jwt-issuer",
        metavar="URL",
        help="clients must send tokens (JWT) of this issuer; needs the next two",
    )
    parser.add_argument(
        "--jwt-audience",
        action="append",
        default=[],
        metavar="NAME",
        help="whom they must be for; may repeat",
    )
    parser.add_argument("--jwks", type=Path, metavar="FILE", help="the issuer's keys, a JWK Set")
    parser.add_argument(
        "--allowed-host",
        action="append",
        default=[],
        metavar="NAME",
        help="name that clients may call this server by: NAME, NAME:PORT, *.SUFFIX or *; may be repeated "
        "(default: localhost only)",
    )
    parser.add_argument(
        "--http-sse",
        action="store_true",
        help="serve the deprecated HTTP+SSE transport of revision 2024-11-05, too, at /sse",
    )
    parser.add_argument(
        "--calls-per-minute", type=_whole, default=0, metavar="N", help="limit of one client (default: none)"
    )
    parser.add_argument(
        "--call-burst",
        type=_whole,
        default=0,
        metavar="N",
        help="calls that a client may make at once after a time of quiet (default: what 10 seconds bring)",
    )
    parser.add_argument(
        "--concurrent-calls", type=_whole, default=0, metavar="N", help="limit of one client (default: none)"
    )
    parser.add_argument("--audit", action="store_true", help="write a line about every call to stdout")


def _add_server(parser: argparse.ArgumentParser) -> None:
    """What is spoken with the server, and within which limits."""
    parser.add_argument("--name", help="name of the server in messages (default: the program's or package's)")
    parser.add_argument(
        "--call-timeout", type=float, default=30.0, metavar="SECONDS", help="limit of a call (default 30)"
    )
    parser.add_argument(
        "--max-message-bytes",
        type=int,
        default=16 << 20,
        metavar="BYTES",
        help="limit of one message (default 16777216)",
    )
    parser.add_argument(
        "--protocol",
        choices=opening.PROTOCOLS,
        default=opening.AUTO,
        help="speak with the server as of the revisions with a handshake (Legacy), as of those without "
        "sessions (Modern), or find out which (Auto, the default)",
    )
    parser.add_argument(
        "--per-client",
        action="store_true",
        help="give each client session a process of its own (default: all share one)",
    )
    parser.add_argument(
        "--max-processes", type=int, default=4, metavar="N", help="limit of these processes (default 4)"
    )
    parser.add_argument(
        "--process-memory-limit",
        type=_memory,
        default=0,
        metavar="BYTES",
        help="memory that each process may hold with all it started, also with suffix Ki, Mi or Gi; it is "
        "spec.session.processMemoryLimit (default: none)",
    )
    parser.add_argument(
        "--client-capability",
        action="append",
        choices=methods.CLIENT_CAPABILITIES,
        default=[],
        help="declare to the server that it may ask clients for this; may be repeated (default: none)",
    )


def _whole(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _memory(text: str) -> int:
    number, power = (text[:-2], _SUFFIXES[text[-2:]]) if text[-2:] in _SUFFIXES else (text, 0)
    if not number.isdecimal() or not int(number):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes above 0, as 134217728 or 128Mi")
    return int(number) << power


def find_launcher() -> str:
    """The launcher's path.

    Raises:
        LauncherMissingError: there is none.

    """
    named = os.environ.get(ENV_LAUNCHER)
    if named:
        if os.access(named, os.X_OK):
            return named
        raise LauncherMissingError(f"{ENV_LAUNCHER}={named} is not an executable file")
    built = Path.cwd() / "build" / LAUNCHER
    found = str(built) if os.access(built, os.X_OK) else shutil.which(LAUNCHER)
    if found is None:
        raise LauncherMissingError(
            f"the launcher is missing: run `make launcher`, or put {LAUNCHER} on PATH, or set {ENV_LAUNCHER}"
        )
    return found


def _settings(options: argparse.Namespace, command: list[str], directory: Path, port: int) -> Settings:
    return Settings(
        server_name=options.name or naming.server_name(command),
        server_uid=secrets.token_hex(8),
        signing_key=secrets.token_bytes(32),
        token=options.token.encode() if options.token else None,
        jwt=_rules(options),
        admin_token=secrets.token_hex(16).encode(),
        socket_path=str(directory / "server.sock"),
        state_dir=directory / "state",
        host=options.host,
        port=port,
        allowed_hosts=tuple(options.allowed_host),
        call_timeout=options.call_timeout,
        max_message_bytes=options.max_message_bytes,
        http_sse=options.http_sse,
        protocol=options.protocol,
        session_mode=PER_CLIENT if options.per_client else SHARED,
        max_processes=options.max_processes,
        control_path=str(directory / "control.sock"),
        limits=Limits(options.calls_per_minute, options.call_burst, options.concurrent_calls),
        audit=options.audit,
        client_capabilities=tuple(dict.fromkeys(options.client_capability)),
    )


def _rules(options: argparse.Namespace) -> Rules | None:
    if options.jwt_issuer is None:
        return None
    return Rules(issuer=options.jwt_issuer, audiences=tuple(options.jwt_audience))


def _launch(launcher: str, settings: Settings, command: list[str], memory: int) -> subprocess.Popen[bytes]:
    control = ["--control", settings.control_path, "--max-processes", str(settings.max_processes)]
    control += ["--memory-limit", str(memory)] if memory else []
    names = ",".join(name for name in os.environ if "," not in name)
    return subprocess.Popen(
        [
            launcher, "run", "--socket", settings.socket_path,
            "--max-line-bytes", str(settings.max_message_bytes),
            "--plain-env", names,
            "--termination-log", str(settings.state_dir.parent / "termination.json"),
            "--die-with-parent", str(os.getpid()),
            *(control if settings.session_mode == PER_CLIENT else ()),
            "--", *command,
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl+C reaches the relay alone, which then ends the launcher in order
    )  # fmt: skip


def _announce(process: subprocess.Popen[bytes], host: str, port: int) -> None:
    if process.poll() is not None:
        return  # there is nothing to be called; the launcher has said why
    shown = f"[{host}]" if ":" in host else host
    sys.stdout.write(json.dumps({"url": f"http://{shown}:{port}/mcp"}) + "\n")
    sys.stdout.flush()


def _exit_code(returned: int) -> int:
    """A process's exit code as a shell gives it: 128 and the signal's number for one that a signal ended."""
    return returned if returned >= 0 else 128 - returned


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(LAUNCHER_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
