"""What a server is called when nobody named it: its program, or the package that a runner fetches."""

import re
from collections.abc import Sequence
from pathlib import PurePath

# Programs that run another one, which their arguments name.
_RUNNERS = frozenset(
    {"npx", "bunx", "pnpx", "uvx", "uv", "pipx", "npm", "pnpm", "yarn", "bun", "deno", "node"}
)
_PYTHON = re.compile(r"(python|pypy)[\d.]*")
_SUBCOMMANDS = frozenset({"run", "exec", "tool", "dlx", "x"})
_OPTIONS_WITH_CODE = frozenset({"-c", "-e", "--eval"})
_VERSION = re.compile(r"(?<=.)(@|==|>=|~=).*")


def server_name(command: Sequence[str]) -> str:
    """The name of a command that has at least one word.

    `npx -y @scope/server-time@2 --zone x` is `server-time`, `python -m mcp_time` is `mcp_time`,
    `/usr/bin/serve --port 1` is `serve`.
    """
    program = PurePath(command[0]).name
    if program not in _RUNNERS and not _PYTHON.fullmatch(program):
        return program or command[0]
    words = list(command[1:])
    while words and (words[0].startswith("-") or words[0] in _SUBCOMMANDS):
        if words[0] in _OPTIONS_WITH_CODE:
            return program
        del words[0]
    return _without_version(words[0]) if words else program


def _without_version(package: str) -> str:
    name = PurePath(package).name
    return _VERSION.sub("", name) or name or package
