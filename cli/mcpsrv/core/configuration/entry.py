"""The entries of a client's configuration, as they stand there, checked for their types only."""

import dataclasses
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcpsrv.core.errors import UsageError

# Other clients' words for the URL of an HTTP server.
_URL_KEYS: Final = ("url", "serverUrl", "httpUrl")
_TYPE_KEYS: Final = ("type", "transport", "transportType")
_HTTP_TYPES: Final = frozenset({"http", "sse", "streamable-http", "streamableHttp", "streamable_http"})
_PATH: Final = re.compile(r"[~./\\]|[A-Za-z]:[\\/]")


@dataclass(frozen=True)
class Input:
    """A question that VS Code asks before the start: `${input:<id>}` stands for the answer."""

    id: str
    prompt: str = ""
    default: str | None = None
    password: bool = False
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """One server. `field` is where it stands in the file, for messages: `mcpServers.github`."""

    name: str
    field: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    cwd: str = ""
    env_file: str = ""
    url: str = ""
    transport: str = "stdio"
    headers: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    disabled: bool = False


@dataclass(frozen=True)
class Configuration:
    """A whole file."""

    entries: tuple[Entry, ...]
    inputs: Mapping[str, Input]


def read(document: Any) -> Configuration:
    """The servers and inputs of a parsed file. Raises UsageError naming the field that is wrong."""
    if not isinstance(document, dict):
        raise UsageError('the file holds no object: it should look like {"mcpServers": {…}}')
    key, servers, holder = _servers(document)
    listed = _object(servers, key)
    inputs = (_input(item, f"inputs[{n}]") for n, item in enumerate(_list(holder.get("inputs"), "inputs")))
    return Configuration(
        tuple(
            _entry(name, _object(value, f"{key}.{name}"), f"{key}.{name}") for name, value in listed.items()
        ),
        {found.id: found for found in inputs},
    )


def _servers(document: dict[str, Any]) -> tuple[str, Any, dict[str, Any]]:
    """Key and value of the servers, and the object that holds them."""
    for key in ("mcpServers", "servers", "context_servers"):
        if key in document:
            return key, document[key], document
    nested = document.get("mcp")
    if isinstance(nested, dict) and "servers" in nested:
        return "mcp.servers", nested["servers"], nested
    raise UsageError(
        "the file has neither mcpServers (Claude Desktop, Cursor, .mcp.json) nor servers (VS Code): "
        "pass the file in which the client keeps its MCP servers"
    )


def _entry(name: str, raw: dict[str, Any], where: str) -> Entry:
    command = _text(raw.get("command"), f"{where}.command")
    args = tuple(
        _text(item, f"{where}.args[{n}]") for n, item in enumerate(_list(raw.get("args"), f"{where}.args"))
    )
    if not args and len(words := _words(command)) > 1:
        command, args = words[0], tuple(words[1:])
    url = next((_text(raw[key], f"{where}.{key}") for key in _URL_KEYS if raw.get(key)), "")
    return Entry(
        name=name,
        field=where,
        command=command,
        args=args,
        env=_texts(raw.get("env"), f"{where}.env"),
        cwd=_text(raw.get("cwd"), f"{where}.cwd"),
        env_file=_text(raw.get("envFile"), f"{where}.envFile"),
        url=url,
        transport=_transport(raw, url),
        headers=_texts(raw.get("headers"), f"{where}.headers"),
        disabled=raw.get("disabled") is True or raw.get("enabled") is False,
    )


def _words(command: str) -> list[str]:
    """The words of a command that was written as one line; a path with blanks stays one word."""
    if _PATH.match(command):
        return [command]
    try:
        return shlex.split(command)
    except ValueError:
        return [command]


def _transport(raw: dict[str, Any], url: str) -> str:
    told = next((str(raw[key]) for key in _TYPE_KEYS if raw.get(key)), "")
    if told in _HTTP_TYPES:
        return "sse" if told == "sse" else "http"
    return "http" if url and not raw.get("command") else "stdio"


def _input(raw: Any, where: str) -> Input:
    found = _object(raw, where)
    options = tuple(
        _text(item, f"{where}.options") for item in _list(found.get("options"), f"{where}.options")
    )
    return Input(
        id=_text(found.get("id"), f"{where}.id"),
        prompt=_text(found.get("description"), f"{where}.description"),
        default=_text(found["default"], f"{where}.default") if "default" in found else None,
        password=found.get("password") is True,
        options=options,
    )


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{where} must be an object in braces, it is {_kind(value)}")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise UsageError(f"{where} must be a list in brackets, it is {_kind(value)}")
    return value


def _text(value: Any, where: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise UsageError(f"{where} must be a string, it is {_kind(value)}")


def _texts(value: Any, where: str) -> dict[str, str | None]:
    found = _object({} if value is None else value, where)
    return {key: None if item is None else _text(item, f"{where}.{key}") for key, item in found.items()}


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
