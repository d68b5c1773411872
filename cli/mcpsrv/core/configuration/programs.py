"""The program that an entry names, in the words of a container: wrappers of Windows removed, paths cut."""

import re
from typing import Final

from mcpsrv.core.configuration.launch import Launch, Level, Note, UnsupportedError, Word

# What the default image has.
RUNTIME: Final = frozenset({"npx", "npm", "node", "uvx", "uv", "python", "python3", "sh"})
# Other launchers of packages, and the words with which the default image does the same.
_LIKE: Final[dict[tuple[str, ...], tuple[str, ...]]] = {
    ("bunx",): ("npx", "-y"),
    ("bun", "x"): ("npx", "-y"),
    ("pnpm", "dlx"): ("npx", "-y"),
    ("pnpx",): ("npx", "-y"),
    ("yarn", "dlx"): ("npx", "-y"),
    ("pipx", "run"): ("uvx",),
    ("py",): ("python3",),
}
_SHELLS: Final = {"cmd": ("/c", "/C", "/s", "/d", "/k"), "wsl": ("-e", "--exec", "--")}
_SUFFIX: Final = re.compile(r"(?i)\.(exe|cmd|bat|ps1)$")
_ENGINES: Final = frozenset({"docker", "podman", "nerdctl"})


def plain(launch: Launch) -> Launch:
    """The launch with a program that a container can have."""
    return _alike(_named(_unwrapped(launch)))


def is_engine(launch: Launch) -> bool:
    """Whether the program runs containers."""
    return bool(launch.command) and launch.command[0].text in _ENGINES


def known(launch: Launch) -> Launch:
    """The launch, if the default image has its program.

    Raises:
        UnsupportedError: it does not, and the entry names no image.

    """
    program = launch.command[0]
    if launch.image or program.text in RUNTIME:
        return launch
    raise UnsupportedError(
        program.field,
        f"{program.text} is not in the default image, which has npx, npm, node, uvx, uv and python3: put the "
        "server into an image and write an MCPServer with spec.image and spec.command",
    )


def base(path: str) -> str:
    """The program's own name: the last part of its path, without the suffixes of Windows."""
    return _SUFFIX.sub("", re.split(r"[\\/]", path)[-1])


def _unwrapped(launch: Launch) -> Launch:
    """Without `cmd /c` and the like."""
    words = launch.command
    shell = base(words[0].text).lower() if words else ""
    if shell not in _SHELLS:
        return launch
    rest = list(words[1:])
    while rest and rest[0].text in _SHELLS[shell]:
        rest.pop(0)
    if not rest:
        raise UnsupportedError(words[0].field, f"{words[0].text} starts no server: name the server's program")
    return launch.but(command=tuple(rest))


def _named(launch: Launch) -> Launch:
    """A path to a known program of this computer becomes the program's name."""
    program = launch.command[0]
    name = base(program.text)
    lowered = name.lower()
    ours = lowered in RUNTIME | _ENGINES or any(key[0] == lowered for key in _LIKE)
    if not ours or name == program.text:
        return launch
    note = Note(program.field, f"{program.text} becomes {lowered}", Level.INFO)
    return launch.but(note, command=(program.with_text(lowered), *launch.command[1:]))


def _alike(launch: Launch) -> Launch:
    words = launch.command
    for there, here in _LIKE.items():
        if tuple(word.text for word in words[: len(there)]) == there:
            new = tuple(Word(text, words[0].field) for text in here)
            rest = words[len(there) :]
            if rest and rest[0].text in {"-y", "--yes"}:
                rest = rest[1:]
            note = Note(words[0].field, f"{' '.join(there)} becomes {' '.join(here)}", Level.INFO)
            return launch.but(note, command=(*new, *rest))
    return launch
