"""`import`: manifests from the configuration of a desktop client."""

import asyncio
import base64
import json
import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import typer
import yaml
from rich.markup import escape

from mcp_operator.core.api import KIND
from mcpsrv.cluster.access import Where
from mcpsrv.cluster.kinds import BY_TITLE
from mcpsrv.cluster.kube import ConflictError, Kube, connected
from mcpsrv.commands import waiting
from mcpsrv.core.configuration import conversion, entry, jsonc, placeholders
from mcpsrv.core.configuration.conversion import Imported, Options
from mcpsrv.core.configuration.entry import Configuration, Input
from mcpsrv.core.configuration.launch import Level
from mcpsrv.core.configuration.placeholders import Answers
from mcpsrv.core.errors import ExitCode, UsageError
from mcpsrv.terminal import Terminal

Json = dict[str, Any]
_OWNER_ONLY: Final = stat.S_IRUSR | stat.S_IWUSR
_MAX_BYTES: Final = 16_777_216


@dataclass(frozen=True)
class Wanted:
    """What the user asked for. `file` and `output` may be "-"; "" as output: stdout unless it is applied."""

    file: str
    options: Options
    output: str = ""
    apply: bool = False
    wait: bool = True
    seconds: float = 300.0
    skip_unsupported: bool = False


async def run(terminal: Terminal, where: Where, wanted: Wanted) -> ExitCode:
    """Converts, writes, applies. FAILED when an entry was left out, or is not Ready after being applied."""
    configuration = read(wanted.file)
    options = _answered(configuration, wanted)
    _check_names(configuration, options)
    found = conversion.convert(configuration, options)
    _tell(terminal, found)
    objects = [manifest for one in found for manifest in one.manifests]
    if objects and (wanted.output or not wanted.apply):
        _write(terminal, objects, wanted.output)
    left_out = any(one.skipped for one in found) and not wanted.skip_unsupported
    ready = await _apply(terminal, where, objects, wanted) if wanted.apply and objects else True
    return ExitCode.FAILED if left_out or not ready else ExitCode.OK


def read(file: str) -> Configuration:
    """The configuration in a file, or on stdin. Raises UsageError."""
    try:
        text = sys.stdin.read(_MAX_BYTES) if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error
    return entry.read(jsonc.parse(text, "stdin" if file == "-" else file))


def _answered(configuration: Configuration, wanted: Wanted) -> Options:
    """The options with an answer for every input; asks for what is missing if a person is there."""
    given = wanted.options.answers
    missing = placeholders.missing(configuration, given)
    if not missing:
        return wanted.options
    if wanted.file == "-" or not sys.stdin.isatty():
        words = " ".join(f"--input {one.id}=VALUE" for one in missing)
        raise UsageError(f"the file asks for {', '.join(one.id for one in missing)}: pass {words}")
    answers = {**given.inputs, **{one.id: _ask(one) for one in missing}}
    options = wanted.options
    return Options(
        options.namespace, Answers(answers, given.env), options.commands, options.only, options.with_disabled
    )


def _ask(one: Input) -> str:
    choices = f" ({', '.join(one.options)})" if one.options else ""
    while True:
        answer = str(typer.prompt(f"{one.prompt or one.id}{choices}", hide_input=one.password, err=True))
        if not one.options or answer in one.options:
            return answer


def _check_names(configuration: Configuration, options: Options) -> None:
    known = [one.name for one in configuration.entries]
    for option, names in (("--only", options.only), ("--command", options.commands)):
        unknown = [name for name in names if name not in known]
        if unknown:
            raise UsageError(f"{option} {unknown[0]}: the file has no such server; it has {', '.join(known)}")


def _tell(terminal: Terminal, found: tuple[Imported, ...]) -> None:
    """What became of each entry, on stderr; never a secret value."""
    marks = {Level.INFO: "[dim]·[/dim]", Level.WARNING: "[yellow]![/yellow]", Level.SKIPPED: "[red]✗[/red]"}
    for one in found:
        made = "[green]✓[/green]" if one.manifests else marks[Level.SKIPPED if one.skipped else Level.INFO]
        terminal.err.print(f"{made} {escape(one.entry)}: {escape(_outcome(one))}", soft_wrap=True)
        for note in one.notes:
            terminal.err.print(
                f"  {marks[note.level]} {escape(f'{note.field}: {note.message}')}", soft_wrap=True
            )


def _outcome(one: Imported) -> str:
    if not one.manifests:
        return "left out"
    secret = f" and Secret {one.manifests[0]['metadata']['name']}" if one.secrets else ""
    return f"{KIND} {one.name}{secret}"


def _write(terminal: Terminal, objects: list[Json], output: str) -> None:
    if terminal.is_json:
        text = _json_list(objects)
    else:
        text = yaml.safe_dump_all(
            objects, sort_keys=False, allow_unicode=True, width=1000, explicit_start=True
        )
    if output in {"", "-"}:
        sys.stdout.write(text)
        return
    # There may be secrets in it: nobody else may read it.
    try:
        with os.fdopen(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY), "w") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"--output {output}: {error.strerror}") from error
    terminal.note(f"written to {output}: kubectl apply -f {output}")


def _json_list(objects: list[Json]) -> str:
    return (
        json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2, ensure_ascii=False)
        + "\n"
    )


async def _apply(terminal: Terminal, where: Where, objects: list[Json], wanted: Wanted) -> bool:
    """Whether everything was applied and, if that is waited for, became Ready."""
    async with connected(where) as kube:
        for manifest in objects:
            await _apply_one(kube, manifest)
        names = [one["metadata"]["name"] for one in objects if one["kind"] == KIND]
        servers = "MCPServer" if len(names) == 1 else "MCPServers"
        terminal.note(f"applied {len(names)} {servers} to namespace {kube.namespace}")
        return await _all_ready(terminal, kube, names, wanted.seconds) if wanted.wait else True


async def _apply_one(kube: Kube, manifest: Json) -> None:
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    try:
        await kube.apply(BY_TITLE[kind], _with_data(manifest))
    except ConflictError as error:
        cure = "rename the entry, or write the manifests with --output and decide there"
        raise ConflictError(f"{kind} {name} belongs to somebody else: {error}; {cure}") from error


def _with_data(manifest: Json) -> Json:
    """A Secret with `data`: what is applied by `stringData` cannot be taken away by it again."""
    if "stringData" not in manifest:
        return manifest
    values: Mapping[str, str] = manifest["stringData"]
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    return {**{key: value for key, value in manifest.items() if key != "stringData"}, "data": data}


async def _all_ready(terminal: Terminal, kube: Kube, names: list[str], seconds: float) -> bool:
    quiet = Terminal()
    quiet.err.quiet = True
    waits = (waiting.until(kube, name, waiting.ready, seconds, quiet) for name in names)
    with terminal.waiting(f"waiting until {', '.join(names)} are Ready"):
        waited = await asyncio.gather(*waits)
    for name, one in zip(names, waited, strict=True):
        if one.done:
            terminal.note(f"{name} is Ready after {one.seconds:.1f} s")
        else:
            step = one.timeline.steps[-1]
            terminal.error(f"{name} is not Ready: {step.reason}: {step.message}; see: mcpsrv why {name}")
    return all(one.done for one in waited)
