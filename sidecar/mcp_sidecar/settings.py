"""Settings of the relay: from the environment in a pod, from arguments on a laptop."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcp_relay_api import paths
from mcp_sidecar.core import access, claims, methods, opening, target
from mcp_sidecar.core.bucket import NONE, Limits
from mcp_sidecar.core.claims import Rules
from mcp_sidecar.core.overrides import Override
from mcp_sidecar.core.target import Target

AUTH_KINDS = ("Bearer", "JWT", "None")
MAX_SKEW_SECONDS = 300.0
RESUME, EXPIRE = RESTARTS = ("Resume", "Expire")
SHARED, PER_CLIENT = MODES = ("Shared", "PerClient")


class SettingsError(Exception):
    """A setting that is missing or wrong; the message names it and the cure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All that a relay is told. Times in seconds, sizes in bytes."""

    server_name: str
    server_namespace: str = ""
    """For the log; empty outside a cluster."""
    server_uid: str
    signing_key: bytes
    token: bytes | None
    """The clients' tokens, one a line; None: they need none of these."""
    token_file: Path | None = None
    """Where the tokens are read from when they change; None: they never do."""
    jwt: Rules | None = None
    """Which signed tokens clients must have; None: they need none of these."""
    jwks: bytes = b""
    """The issuer's keys, as JWK Set, until others are brought; empty: none."""
    admin_token: bytes
    socket_path: str = paths.SOCKET_PATH
    remote: Target | None = None
    """The remote server in place of the one behind the socket."""
    secrets_dir: Path = Path(paths.SECRETS_DIR)
    """Where the values of the remote server's headers stand."""
    state_dir: Path
    host: str = ""
    """Address that is served; "": all, of both families."""
    port: int = paths.MCP_PORT
    admin_port: int = paths.ADMIN_PORT
    allowed_hosts: tuple[str, ...] = ()
    startup_timeout: float = 120.0
    call_timeout: float = 30.0
    max_call: float = 0.0
    """Limit of a call that reports progress; up to `call_timeout` progress changes nothing."""
    idle_timeout: float = 7200.0
    on_server_restart: str = RESUME
    """What becomes of clients' sessions when another process takes the server's place."""
    max_clients: int = 1000
    session_mode: str = SHARED
    """Whether clients share one process, or each session has its own."""
    max_processes: int = 4
    """With one for each session: how many may run at once, without the first."""
    control_path: str = ""
    """Socket on which more processes are asked for."""
    max_message_bytes: int = 16 * 1024 * 1024
    http_sse: bool = False
    """Serve the transport of revision 2024-11-05, too."""
    protocol: str = opening.AUTO
    """Which kind of revision to speak with the server: Auto, Legacy or Modern."""
    client_capabilities: tuple[str, ...] = ()
    """Which of sampling, elicitation and roots the relay declares towards the server."""

    tools_allow: tuple[str, ...] = ()
    """Globs of tool names that clients may see and call; (): all."""
    tools_deny: tuple[str, ...] = ()
    """Globs of tool names that they may not, whatever is allowed."""
    limits: Limits = NONE
    """What one client may do."""
    audit: bool = False
    """Write a line about every call to stdout."""
    tools_overrides: tuple[Override, ...] = ()
    """Tools that clients know under another name, title or description."""


def from_environment(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of a relay in a pod.

    Raises:
        SettingsError: a setting or a mounted secret is missing or has no sense.

    """
    auth = _auth(environment)
    secrets = Path(environment.get("MCP_RELAY_SECRETS_DIR", paths.SECRETS_DIR))
    return Settings(
        server_name=_text(environment, paths.ENV_SERVER_NAME),
        server_namespace=environment.get(paths.ENV_SERVER_NAMESPACE, ""),
        server_uid=_text(environment, paths.ENV_SERVER_UID),
        signing_key=_secret(secrets / paths.SIGNING_KEY_FILE),
        token=_secret(secrets / paths.TOKEN_FILE) if auth == "Bearer" else None,
        token_file=secrets / paths.TOKEN_FILE,
        jwt=_rules(environment) if auth == "JWT" else None,
        admin_token=_secret(secrets / paths.ADMIN_TOKEN_FILE),
        socket_path=environment.get("MCP_RELAY_SOCKET", paths.SOCKET_PATH),
        remote=_remote(environment),
        secrets_dir=secrets,
        state_dir=Path(environment.get("MCP_RELAY_STATE_DIR", paths.STATE_DIR)),
        host=environment.get("MCP_RELAY_HOST", ""),
        port=int(_number(environment, "MCP_RELAY_PORT", paths.MCP_PORT)),
        admin_port=int(_number(environment, "MCP_RELAY_ADMIN_PORT", paths.ADMIN_PORT)),
        allowed_hosts=_hosts(environment),
        startup_timeout=_number(environment, paths.ENV_STARTUP_TIMEOUT, 120),
        call_timeout=_number(environment, paths.ENV_CALL_TIMEOUT, 30),
        max_call=_number(environment, paths.ENV_MAX_CALL, 1) if environment.get(paths.ENV_MAX_CALL) else 0.0,
        idle_timeout=_number(environment, paths.ENV_IDLE_TIMEOUT, 7200),
        on_server_restart=_choice(environment, paths.ENV_ON_SERVER_RESTART, RESTARTS),
        max_clients=int(_number(environment, paths.ENV_MAX_CLIENTS, 1000)),
        session_mode=_choice(environment, paths.ENV_SESSION_MODE, MODES),
        max_processes=int(_number(environment, paths.ENV_MAX_PROCESSES, 4)),
        control_path=environment.get("MCP_RELAY_CONTROL", paths.CONTROL_PATH),
        max_message_bytes=int(_number(environment, paths.ENV_MAX_MESSAGE_BYTES, 16 * 1024 * 1024)),
        http_sse=_choice(environment, paths.ENV_HTTP_SSE, ("false", "true")) == "true",
        protocol=_choice(environment, paths.ENV_PROTOCOL, opening.PROTOCOLS),
        client_capabilities=_capabilities(environment),
        tools_allow=_globs(environment, paths.ENV_TOOLS_ALLOW),
        tools_deny=_globs(environment, paths.ENV_TOOLS_DENY),
        limits=Limits(
            per_minute=_limit(environment, paths.ENV_CALLS_PER_MINUTE),
            burst=_limit(environment, paths.ENV_CALL_BURST),
            concurrent=_limit(environment, paths.ENV_CONCURRENT_CALLS),
        ),
        audit=_choice(environment, paths.ENV_AUDIT, ("None", "Calls")) == "Calls",
        tools_overrides=_overrides(environment, paths.ENV_TOOLS_OVERRIDES),
    )


def _auth(environment: Mapping[str, str]) -> str:
    auth = environment.get(paths.ENV_AUTH, "Bearer")
    if auth not in AUTH_KINDS:
        raise SettingsError(f"{paths.ENV_AUTH}={auth!r} is not one of {', '.join(AUTH_KINDS)}")
    return auth


def _rules(environment: Mapping[str, str]) -> Rules:
    """The JSON object that the operator writes, in the names of `spec.auth.jwt`."""
    name = paths.ENV_JWT
    try:
        told = json.loads(environment.get(name) or "{}")
        found = Rules(
            issuer=str(told["issuer"]),
            audiences=tuple(map(str, told["audiences"])),
            algorithms=tuple(map(str, told.get("algorithms") or claims.ALGORITHMS)),
            clock_skew=float(told.get("clockSkewSeconds", claims.CLOCK_SKEW_SECONDS)),
            subject_claim=str(told.get("subjectClaim", "sub")),
            subjects=tuple(map(str, told.get("subjects", ()))),
            resource=str(told.get("resource", "")),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SettingsError(f"{name} is not the JSON object that the operator writes: {error!r}") from error
    unknown = set(found.algorithms) - set(claims.ALGORITHMS)
    if unknown or not found.issuer or not found.audiences or not 0 <= found.clock_skew <= MAX_SKEW_SECONDS:
        raise SettingsError(f"{name}: issuer, audiences, algorithms or clockSkewSeconds has no sense")
    return found


def _remote(environment: Mapping[str, str]) -> Target | None:
    text = environment.get(paths.ENV_REMOTE, "")
    try:
        return target.read(text) if text else None
    except target.TargetError as error:
        raise SettingsError(f"{paths.ENV_REMOTE}: {error}") from error


def _globs(environment: Mapping[str, str], name: str) -> tuple[str, ...]:
    text = environment.get(name, "")
    try:
        globs = json.loads(text) if text else []
    except ValueError:
        globs = None
    if not isinstance(globs, list) or not all(isinstance(glob, str) for glob in globs):
        raise SettingsError(f"{name}={text!r} is not a JSON list of globs")
    return tuple(globs)


def _overrides(environment: Mapping[str, str], name: str) -> tuple[Override, ...]:
    text = environment.get(name, "")
    try:
        return tuple(Override(**each) for each in json.loads(text)) if text else ()
    except (ValueError, TypeError) as error:
        raise SettingsError(f"{name}={text!r} is not a JSON list of overrides") from error


def _hosts(environment: Mapping[str, str]) -> tuple[str, ...]:
    names = environment.get(paths.ENV_ALLOWED_HOSTS, "").replace(",", " ").split()
    try:
        resolver = Path(environment.get("MCP_RELAY_RESOLV_CONF", "/etc/resolv.conf")).read_text(
            "utf-8", "replace"
        )
    except OSError:
        resolver = ""  # not in a pod: the usual domain is assumed
    return access.in_cluster(names, resolver)


def _choice(environment: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    """One of some words, the first if nothing is set."""
    chosen = environment.get(name, "") or choices[0]
    if chosen not in choices:
        raise SettingsError(f"{name}={chosen!r} is not one of {', '.join(choices)}")
    return chosen


def _capabilities(environment: Mapping[str, str]) -> tuple[str, ...]:
    names = environment.get(paths.ENV_CLIENT_CAPABILITIES, "").replace(",", " ").split()
    unknown = [name for name in names if name not in methods.CLIENT_CAPABILITIES]
    if unknown:
        known = ", ".join(methods.CLIENT_CAPABILITIES)
        raise SettingsError(f"{paths.ENV_CLIENT_CAPABILITIES}: {unknown[0]!r} is not one of {known}")
    return tuple(dict.fromkeys(names))


def _text(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value:
        raise SettingsError(f"{name} is not set")
    return value


def _number(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name, "")
    try:
        value = float(text) if text else float(default)
    except ValueError:
        value = -1.0
    if not 0 < value < 2**53:
        raise SettingsError(f"{name}={text!r} is not a number above 0")
    return value


def _limit(environment: Mapping[str, str], name: str) -> int:
    """A whole number above 0; 0 where nothing is set."""
    return int(_number(environment, name, 1)) if environment.get(name) else 0


def _secret(path: Path) -> bytes:
    try:
        value = path.read_bytes().strip()
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be read ({error.strerror}); mount the server's Secret there"
        ) from error
    if not value:
        raise SettingsError(f"{path} is empty; the key {path.name!r} of the server's Secret needs a value")
    return value
