"""What stands for something else in a configuration: `${input:id}`, `${env:NAME}`, `$NAME`, folders."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from mcpsrv.core.configuration.entry import Configuration, Entry, Input
from mcpsrv.core.errors import UsageError

# ${input:id}, ${env:NAME}, ${NAME}, ${NAME:-default}; $NAME only as the whole value.
_BRACED: Final = re.compile(r"\$\{(?:(input|env):)?([^{}:]+)(?::-([^{}]*))?\}")
_WHOLE: Final = re.compile(r"\$([A-Z_][A-Z0-9_]*)")
_FOLDERS: Final = {
    "workspaceFolder": "/workspace",
    "workspaceFolderBasename": "workspace",
    "userHome": "/home/mcp",
    "pathSeparator": "/",
    "/": "/",
}


@dataclass(frozen=True)
class Value:
    """A text with its placeholders replaced. `secret`: an answer that VS Code hides is in it."""

    text: str
    secret: bool = False


@dataclass(frozen=True)
class Answers:
    """What placeholders stand for: answers by input id, environment variables by name."""

    inputs: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)


def texts(entry: Entry) -> Iterator[tuple[str, str]]:
    """Every text of an entry in which placeholders are replaced, with its field."""
    yield f"{entry.field}.command", entry.command
    yield from ((f"{entry.field}.args[{n}]", text) for n, text in enumerate(entry.args))
    yield from ((f"{entry.field}.env.{name}", text or "") for name, text in entry.env.items())
    yield f"{entry.field}.cwd", entry.cwd
    yield f"{entry.field}.url", entry.url
    yield from ((f"{entry.field}.headers.{name}", text or "") for name, text in entry.headers.items())


def asked(configuration: Configuration) -> tuple[Input, ...]:
    """The inputs that entries in use refer to, in order; one that the file does not describe is made up."""
    ids: dict[str, Input] = {}
    for entry in configuration.entries:
        if entry.disabled:
            continue
        for _, text in texts(entry):
            for kind, name, _ in _BRACED.findall(text):
                if kind == "input":
                    ids.setdefault(name, configuration.inputs.get(name, Input(name, password=True)))
    return tuple(ids.values())


def missing(configuration: Configuration, answers: Answers) -> tuple[Input, ...]:
    """The inputs that have neither an answer nor a default."""
    return tuple(one for one in asked(configuration) if one.id not in answers.inputs and one.default is None)


def resolve(text: str, where: str, answers: Answers, inputs: Mapping[str, Input]) -> Value:
    """The text with everything replaced. Raises UsageError naming field and cure for what has no value."""
    if whole := _WHOLE.fullmatch(text):
        return Value(_variable(whole[1], None, where, answers))
    secret = False

    def replace(found: re.Match[str]) -> str:
        nonlocal secret
        kind, name, default = found[1], found[2], found[3]
        if kind == "input":
            one = inputs.get(name, Input(name, password=True))
            secret = secret or one.password
            return _answer(one, where, answers)
        if kind is None and name in _FOLDERS:
            return _FOLDERS[name]
        return _variable(name, default, where, answers)

    replaced = _BRACED.sub(replace, text)
    return Value(replaced, secret)


def _answer(one: Input, where: str, answers: Answers) -> str:
    if one.id in answers.inputs:
        return answers.inputs[one.id]
    if one.default is not None:
        return one.default
    raise UsageError(f"{where}: ${{input:{one.id}}} has no value: pass --input {one.id}=VALUE")


def _variable(name: str, default: str | None, where: str, answers: Answers) -> str:
    found = answers.env.get(name, default)
    if found is None:
        raise UsageError(
            f"{where}: the variable {name} is not set here: export it or pass --env {name}=VALUE"
        )
    return found
