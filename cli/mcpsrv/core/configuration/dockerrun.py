"""`docker run -i --rm -e NAME image args`: the image is what is wanted, the rest says how to run it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from mcpsrv.core.configuration.launch import Launch, Level, Note, UnsupportedError, Word
from mcpsrv.core.configuration.placeholders import Value


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_SWITCHES: Final = _set(
    "--rm --init --interactive --tty --detach --privileged --read-only --sig-proxy --oom-kill-disable "
    "--publish-all --no-healthcheck --quiet --disable-content-trust"
)
_SHORT_SWITCHES: Final = frozenset("itdPq")
_LONG: Final = {
    "-e": "--env", "-v": "--volume", "-p": "--publish", "-u": "--user", "-w": "--workdir", "-m": "--memory",
    "-h": "--hostname", "-l": "--label", "-c": "--cpu-shares", "-a": "--attach", "--net": "--network",
}  # fmt: skip
# These say nothing that matters in a pod.
_IDLE: Final = _set(
    "--rm --init --interactive --tty --sig-proxy --quiet --name --pull --platform --hostname --label "
    "--restart --attach --log-driver --log-opt --stop-signal --stop-timeout --read-only --cap-drop --cidfile "
    "--disable-content-trust"
)


@dataclass
class _Options:
    """What the options come to."""

    env: dict[str, Value] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    entrypoint: Word | None = None
    working_dir: str = ""
    user: int | None = None


def image(launch: Launch, own_command: tuple[str, ...] = ()) -> Launch:
    """The launch of `docker run …` as a launch of the image itself.

    `own_command` is the command inside the image, for one that is not named by `--entrypoint`.

    Raises:
        UnsupportedError: it is another subcommand, or no image is named.

    """
    words = list(launch.command)
    if len(words) > 2 and words[1].text == "container":
        del words[1]
    if len(words) < 2 or words[1].text != "run":
        given = " ".join(word.text for word in words[:2])
        raise UnsupportedError(
            words[0].field, f"{given}: of a container engine only `run` can be imported: name the image"
        )
    options = _Options(working_dir=launch.working_dir)
    rest = _read(words[2:], options, launch.env)
    if not rest:
        raise UnsupportedError(launch.field, "docker run names no image: add it to args")
    command = (
        (options.entrypoint,)
        if options.entrypoint
        else tuple(Word(t, f"--command {launch.name}") for t in own_command)
    )
    return launch.but(
        *options.notes,
        image=rest[0].text,
        command=command,
        args=tuple(rest[1:]),
        env=options.env,
        folders=(*launch.folders, *options.folders),
        working_dir=options.working_dir,
        user=options.user,
    )


def _read(words: list[Word], options: _Options, env: Mapping[str, Value]) -> list[Word]:
    """Fills the options; the words from the image on."""
    rest = iter(words)
    for word in rest:
        if not word.text.startswith("-"):
            return [word, *rest]
        for name, value in _option(word, rest):
            _apply(name, value, options, env)
    return []


def _option(word: Word, rest: Iterator[Word]) -> Iterator[tuple[str, Word]]:
    """The options that a word stands for, by their long names, with their values."""
    name, equals, value = word.text.partition("=")
    if word.text.startswith("--"):
        if equals:
            yield _LONG.get(name, name), word.with_text(value)
        elif name in _SWITCHES:
            yield name, word.with_text("")
        else:
            yield _LONG.get(name, name), next(rest, word.with_text(""))
        return
    letters = word.text[1:]
    while letters and letters[0] in _SHORT_SWITCHES:
        letters = letters[1:]
    if letters:
        long = _LONG.get(f"-{letters[0]}", f"-{letters[0]}")
        glued = letters[1:].removeprefix("=")
        yield long, word.with_text(glued) if glued else next(rest, word.with_text(""))


def _apply(name: str, value: Word, options: _Options, env: Mapping[str, Value]) -> None:
    known: dict[str, Callable[[Word, _Options], None]] = {
        "--volume": _volume, "--mount": _mount, "--tmpfs": _volume,
        "--user": _user, "--entrypoint": _entrypoint, "--workdir": _workdir,
    }  # fmt: skip
    if name == "--env":
        _env(value, options, env)
    elif name in known:
        known[name](value, options)
    elif name not in _IDLE:
        cure = {
            "--publish": "an MCPServer is reached by its own Service, so no port is published",
            "--env-file": "the file is not in the cluster: add its variables to env",
            "--network": "the pod has the cluster's network",
            "--memory": "set spec.resources.limits.memory for another limit than the default",
            "--cpus": "set spec.resources.limits.cpu for another limit than the default",
        }.get(name, "write what it is for into the manifest if the server needs it")
        options.notes.append(Note(value.field, f"the option {name} of docker is left out: {cure}"))


def _env(value: Word, options: _Options, env: Mapping[str, Value]) -> None:
    name, equals, text = value.text.partition("=")
    if equals:
        options.env[name] = Value(text, value.secret)
    elif name in env:
        options.env[name] = env[name]
    else:
        options.notes.append(
            Note(value.field, f"-e {name} has no value in env: add it there if the server needs it")
        )


def _volume(value: Word, options: _Options) -> None:
    parts = value.text.split(":")
    if len(parts) > 1 and len(parts[0]) == 1 and parts[1].startswith(("\\", "/")):
        parts[:2] = [":".join(parts[:2])]  # the drive of a Windows path
    _folder(value, parts[0], parts[1] if len(parts) > 1 else parts[0], options)


def _mount(value: Word, options: _Options) -> None:
    pairs = dict(part.partition("=")[::2] for part in value.text.split(","))
    source = pairs.get("source") or pairs.get("src") or "it"
    target = pairs.get("target") or pairs.get("dst") or pairs.get("destination") or ""
    _folder(value, source, target, options)


def _folder(value: Word, source: str, target: str, options: _Options) -> None:
    if not target.startswith("/"):
        options.notes.append(
            Note(value.field, f"{value.text} names no folder of the container: it is left out")
        )
        return
    options.folders.append(target.rstrip("/") or "/")
    options.notes.append(
        Note(
            value.field,
            f"{source} is on this computer: the server gets an empty folder at {target}. For data that "
            "stays, name a PersistentVolumeClaim in spec.volumes",
        )
    )


def _user(value: Word, options: _Options) -> None:
    number = value.text.partition(":")[0]
    if number.isdigit() and number != "0":
        options.user = int(number)
    else:
        options.notes.append(
            Note(
                value.field,
                f"the user {value.text} is left out: the server runs as 2000, never as root",
                Level.INFO,
            )
        )


def _entrypoint(value: Word, options: _Options) -> None:
    options.entrypoint = value


def _workdir(value: Word, options: _Options) -> None:
    options.working_dir = value.text
