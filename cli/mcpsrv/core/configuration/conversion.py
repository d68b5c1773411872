"""A whole configuration as manifests, with a note on everything that is not as it was."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcpsrv.core.configuration import (
    dockerrun,
    localpaths,
    manifests,
    names,
    placeholders,
    programs,
    reach,
    remotes,
    secrecy,
    secretwords,
)
from mcpsrv.core.configuration.entry import Configuration, Entry, Input
from mcpsrv.core.configuration.launch import Launch, Level, Note, UnsupportedError, Word
from mcpsrv.core.configuration.placeholders import Answers, Value

Json = dict[str, Any]
# Shorter values would blot out half of a sentence.
_MASKED_LENGTH: Final = 4
# Variables that describe the computer, not the server.
_COMPUTERS: Final = frozenset(
    [
        "PATH",
        "HOME",
        "USERPROFILE",
        "APPDATA",
        "LOCALAPPDATA",
        "SYSTEMROOT",
        "TEMP",
        "TMP",
        "TMPDIR",
        "NVM_DIR",
    ]
)


@dataclass(frozen=True)
class Imported:
    """One entry. `name` is that of the MCPServer; `manifests` is empty when it was left out."""

    entry: str
    name: str
    manifests: tuple[Json, ...] = ()
    secrets: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def skipped(self) -> bool:
        """Whether it could not be imported; a disabled one is left out on purpose and does not count."""
        return any(note.level is Level.SKIPPED for note in self.notes)


@dataclass(frozen=True)
class Options:
    """What the user chose. `commands` are those inside images, by the entry's name."""

    namespace: str = ""
    answers: Answers = field(default_factory=Answers)
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    only: frozenset[str] = frozenset()
    with_disabled: bool = False


def convert(configuration: Configuration, options: Options) -> tuple[Imported, ...]:
    """Every chosen entry in order. Raises UsageError when a placeholder has no value."""
    chosen = [entry for entry in configuration.entries if not options.only or entry.name in options.only]
    given = names.assigned(entry.name for entry in chosen)
    return tuple(_imported(entry, given[entry.name], options, configuration.inputs) for entry in chosen)


def _imported(entry: Entry, name: str, options: Options, inputs: Mapping[str, Input]) -> Imported:
    if entry.disabled and not options.with_disabled:
        note = Note(entry.field, "is disabled: left out; --with-disabled imports it too", Level.INFO)
        return Imported(entry.name, name, notes=(note,))
    renamed = Note(entry.field, f"the name becomes {name}: Kubernetes allows a-z, 0-9 and -", Level.INFO)
    before = () if name == entry.name else (renamed,)
    try:
        if entry.url or entry.transport != "stdio":
            return _remote(entry, name, options, inputs, before)
        launch = _launch(entry, options.answers, inputs)
        parted = secretwords.part(_translated(launch, options))
    except UnsupportedError as error:
        return Imported(entry.name, name, notes=_masked((*before, error.note), ()))
    objects = manifests.objects(name, options.namespace, parted)
    notes = _masked((*before, *parted.launch.notes), parted.secrets.values())
    return Imported(entry.name, name, objects, tuple(parted.secrets), notes)


def _remote(
    entry: Entry, name: str, options: Options, inputs: Mapping[str, Input], before: tuple[Note, ...]
) -> Imported:
    def value(text: str, where: str) -> Value:
        return placeholders.resolve(text, where, options.answers, inputs)

    spec, secrets, notes = remotes.translated(entry, name, value)
    objects = manifests.written(name, options.namespace, spec, secrets)
    return Imported(entry.name, name, objects, tuple(secrets), _masked((*before, *notes), secrets.values()))


def _masked(notes: Iterable[Note], secrets: Iterable[str]) -> tuple[Note, ...]:
    """The notes without what is secret: they quote paths and words of the file."""
    values = [value for value in secrets if len(value) >= _MASKED_LENGTH]
    return tuple(Note(one.field, secrecy.masked(one.message, values), one.level) for one in notes)


def _launch(entry: Entry, answers: Answers, inputs: Mapping[str, Input]) -> Launch:
    """The entry with its placeholders replaced."""

    def value(text: str, where: str) -> Value:
        return placeholders.resolve(text, where, answers, inputs)

    def word(text: str, where: str) -> Word:
        found = value(text, where)
        return Word(found.text, where, found.secret)

    if not entry.command:
        raise UnsupportedError(
            f"{entry.field}.command", "is missing: name the program that starts the server"
        )
    notes = [_dropped(entry, name) for name in entry.env if name.upper() in _COMPUTERS]
    notes += [_empty(entry, name) for name, text in entry.env.items() if text is None]
    if entry.env_file:
        cure = "the file is not in the cluster: add its variables to env"
        notes.append(Note(f"{entry.field}.envFile", f"{entry.env_file} is left out: {cure}"))
    kept = {
        name: text for name, text in entry.env.items() if text is not None and name.upper() not in _COMPUTERS
    }
    return Launch(
        name=entry.name,
        field=entry.field,
        command=(
            word(entry.command, f"{entry.field}.command"),
            *(word(text, f"{entry.field}.args[{n}]") for n, text in enumerate(entry.args)),
        ),
        env={name: value(text, f"{entry.field}.env.{name}") for name, text in kept.items()},
        working_dir=value(entry.cwd, f"{entry.field}.cwd").text,
        notes=tuple(notes),
    )


def _dropped(entry: Entry, name: str) -> Note:
    return Note(f"{entry.field}.env.{name}", "describes this computer and is left out", Level.INFO)


def _empty(entry: Entry, name: str) -> Note:
    return Note(
        f"{entry.field}.env.{name}", "is null and is left out: give it a value if the server needs it"
    )


def _translated(launch: Launch, options: Options) -> Launch:
    """In the words of a container."""
    launch = reach.told(programs.plain(launch))
    if programs.is_engine(launch):
        return dockerrun.image(launch, options.commands.get(launch.name, ()))
    return programs.known(localpaths.translated(launch))
