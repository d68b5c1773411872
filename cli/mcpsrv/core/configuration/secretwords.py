"""Secret values leave the command line and the plain environment for a Secret."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mcpsrv.core.configuration import names, secrecy
from mcpsrv.core.configuration.launch import Launch, Level, Note, Word
from mcpsrv.core.configuration.placeholders import Value

_FLAG: Final = re.compile(r"^--?([A-Za-z][\w-]*)(=(.*))?$", re.DOTALL)


@dataclass(frozen=True)
class Parted:
    """A launch without secrets, and the secrets by the name of their variable."""

    launch: Launch
    secrets: Mapping[str, str] = field(default_factory=dict)


def part(launch: Launch) -> Parted:
    """Secrets of environment and words apart. Words then say `$(NAME)`, which Kubernetes replaces."""
    told = {name: _reason(name, value) for name, value in launch.env.items()}
    secrets = {name: value.text for name, value in launch.env.items() if told[name]}
    notes = [_note(f"{launch.field}.env.{name}", name, told[name]) for name in secrets]
    env = {name: value for name, value in launch.env.items() if name not in secrets}
    words: list[Word] = []
    flag = ""
    for word in launch.words:
        found = _found(word, flag)
        flag = _flag(word.text)
        if found is None:
            words.append(word.with_text(escaped(word.text)))
            continue
        name = _variable(found.flag, found.value, secrets, env)
        secrets[name] = found.value
        notes.append(_note(word.field, name, found.reason))
        words.append(word.with_text(f"{escaped(found.before)}$({name})"))
    count = len(launch.command)
    parted = launch.but(*notes, env=env, command=tuple(words[:count]), args=tuple(words[count:]))
    return Parted(parted, secrets)


def escaped(text: str) -> str:
    """The text so that Kubernetes, which replaces `$(NAME)` and `$$`, makes this text of it."""
    return text.replace("$", "$$") if "$$" in text or "$(" in text else text


def _reason(name: str, value: Value) -> str:
    return "its input is a password" if value.secret else secrecy.reason(name, value.text)


def _flag(text: str) -> str:
    """The flag whose value the next word is, without dashes; "" if this word is none or has its value."""
    found = _FLAG.match(text)
    return found[1] if found and found[2] is None else ""


@dataclass(frozen=True)
class _Found:
    """A secret in a word: what stands before it, its flag, itself, and why it is one."""

    before: str
    flag: str
    value: str
    reason: str


def _found(word: Word, flag: str) -> _Found | None:
    """The secret of this word, which follows the flag."""
    own = _FLAG.match(word.text)
    glued = own is not None and own[2] is not None
    name, value = (own[1], own[3]) if own and glued else (flag, word.text)
    if value.startswith("-") and not word.secret:
        return None
    reason = "its input is a password" if word.secret else secrecy.reason(name, value)
    before = word.text[: len(word.text) - len(value)] if glued else ""
    return _Found(before, name, value, reason) if reason else None


def _variable(flag: str, value: str, secrets: Mapping[str, str], env: Mapping[str, Value]) -> str:
    wanted = names.variable(flag) or "ARGUMENT"
    options = (wanted, *(f"{wanted}_{n}" for n in range(2, len(secrets) + len(env) + 3)))
    return next(name for name in options if name not in env and secrets.get(name, value) == value)


def _note(where: str, name: str, reason: str) -> Note:
    return Note(where, f"the value of {name} goes to a Secret: {reason}", Level.INFO)
