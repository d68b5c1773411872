"""Paths of the computer that the configuration comes from. No cluster has them.

A folder that is handed to a server becomes an empty volume at the same place, so that the server starts; its
own code cannot be imported; a single file is told about.
"""

import re
from typing import Final

from mcpsrv.core.configuration.launch import HOME, Launch, Note, UnsupportedError, Word

_WINDOWS: Final = re.compile(r"^[A-Za-z]:[\\/]|^\\\\")
# Folders of a person; others like /tmp and /etc exist in a container too.
_PERSONAL: Final = re.compile(
    r"^(?:~|\$HOME)(?:/|$)|^/(?:Users|home|Volumes|mnt|opt|srv|workspace|root|private|data)(?:/|$)"
)
_RELATIVE: Final = re.compile(r"^\.{1,2}(?:[\\/]|$)")
_CODE: Final = re.compile(r"(?i)\.(?:[cm]?[jt]s|py|jar|dll|exe|sh)$")
_FILE: Final = re.compile(r"\.[A-Za-z0-9]{1,8}$")
_FLAG: Final = re.compile(r"^(--?[A-Za-z][\w-]*)=(.+)$")
# Programs whose first argument that is no option is the code to run.
_INTERPRETERS: Final = frozenset({"node", "python", "python3", "sh"})
_CODE_OPTIONS: Final = frozenset({"--directory", "--project", "--from", "--with-editable"})
_WRITABLE: Final = frozenset({HOME, "/tmp"})  # noqa: S108 - in the pod
# The pod's own folders and the system's: a volume there would hide what the server needs.
_TAKEN: Final = frozenset({"/", "/home", "/opt", "/root", "/mnt", "/srv", "/data"})


def is_local(text: str) -> bool:
    """Whether this is a path that only a person's computer has."""
    return bool(_WINDOWS.match(text) or _PERSONAL.match(text) or _RELATIVE.match(text))


def translated(launch: Launch) -> Launch:
    """The launch with folders as volumes and a note on everything local.

    Raises:
        UnsupportedError: the server's own code is local.

    """
    if launch.image:
        return launch
    _check_code(launch)
    command = [launch.command[0]]
    for word in launch.command[1:]:
        launch, replaced = _word(launch, word)
        command.append(replaced)
    return _env(_cwd(launch.but(command=tuple(command))))


def _check_code(launch: Launch) -> None:
    program = launch.command[0]
    for before, word in zip(launch.command, launch.command[1:], strict=False):
        local_code = is_local(word.text) and (_CODE.search(word.text) or before.text in _CODE_OPTIONS)
        if local_code:
            raise _own_code(word)
    rest = [word for word in launch.command[1:] if not word.text.startswith("-")]
    if is_local(program.text):
        raise _own_code(program)
    if program.text in _INTERPRETERS and rest and (is_local(rest[0].text) or _CODE.search(rest[0].text)):
        raise _own_code(rest[0])


def _own_code(word: Word) -> UnsupportedError:
    return UnsupportedError(
        word.field,
        f"{word.text} is the server's code on this computer: publish it as a package for npx or uvx, or put "
        "it into an image and write an MCPServer with spec.image and spec.command",
    )


def _word(launch: Launch, word: Word) -> tuple[Launch, Word]:
    flag, text = ("", word.text)
    if found := _FLAG.match(word.text):
        flag, text = f"{found[1]}=", found[2]
    if not is_local(text):
        return launch, word
    launch, place = _placed(launch, text, word.field)
    return launch, word.with_text(flag + place)


def _placed(launch: Launch, text: str, where: str) -> tuple[Launch, str]:
    """The path in the container, and the launch with a volume if it is a folder."""
    place = _inside(text)
    if _FILE.search(re.split(r"[\\/]", text)[-1]):
        note = Note(
            where,
            f"{text} is a file of this computer: the server finds none at {place}, but may write one. If "
            f"it must read "
            "one, mount a Secret or ConfigMap; if it must stay, a PersistentVolumeClaim",
        )
        return _with_folder(launch.but(note), place.rpartition("/")[0]), place
    if place == HOME:
        note = Note(
            where, f"{text} is the home folder of this computer: the server gets its own, {HOME}, empty"
        )
        return launch.but(note), place
    note = Note(
        where,
        f"{text} is a folder of this computer: the server gets an empty folder at {place}. For data that "
        "stays, name a PersistentVolumeClaim in spec.volumes",
    )
    return _with_folder(launch.but(note), place), place


def _with_folder(launch: Launch, place: str) -> Launch:
    """The launch with a volume there, unless the folder is writable as it is."""
    if place in launch.folders or place in _WRITABLE or place.startswith("/tmp/"):  # noqa: S108 - in the pod
        return launch
    return launch.but(folders=(*launch.folders, place))


def _inside(text: str) -> str:
    """The same path where a container can have it."""
    parts = [part for part in re.split(r"[\\/]+", text) if part not in {"", ".", ".."}]
    if _WINDOWS.match(text):
        place = "/" + "/".join(["data", *parts[1:]][:1] + parts[-1:])
    elif text.startswith("/"):
        place = "/" + "/".join(parts)
    else:
        home = [part for part in parts if part not in {"~", "$HOME"}]
        place = (
            "/".join([HOME, *home]) if text.startswith(("~", "$HOME")) else "/".join(["/workspace", *home])
        )
    place = re.sub(r"[:,]", "-", place)
    return f"/data{place}" if place in _TAKEN or place.startswith("/bridge/") else place


def _cwd(launch: Launch) -> Launch:
    if not launch.working_dir or not is_local(launch.working_dir):
        return launch
    launch, place = _placed(launch, launch.working_dir, f"{launch.field}.cwd")
    return launch.but(working_dir=place)


def _env(launch: Launch) -> Launch:
    """Paths in variables: a folder becomes a volume at the same place, a file is told about."""
    for name, value in launch.env.items():
        if is_local(value.text) and "://" not in value.text:
            launch, place = _placed(launch, value.text, f"{launch.field}.env.{name}")
            launch = launch.but(env={**launch.env, name: type(value)(place, value.secret)})
    return launch
