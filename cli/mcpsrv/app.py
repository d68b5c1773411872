"""The commands and their options. Each loads its own module late, so that `--help` is quick."""

from typing import Annotated

import typer

from mcpsrv.core.clientconfig import Client
from mcpsrv.core.errors import ExitCode, UsageError
from mcpsrv.running import run
from mcpsrv.terminal import Format, Terminal

app = typer.Typer(
    name="mcpsrv",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="MCP servers on Kubernetes: import, test, call, watch and explain them.",
    epilog="Exit codes: 0 done, 1 failed or not Ready, 2 wrong usage, 3 not found, 4 no access to the "
    "cluster.",
)

Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Namespace. Default: that of the context.")]
Context = Annotated[
    str, typer.Option("--context", help="Context of the kubeconfig. Default: the current one.")
]
Kubeconfig = Annotated[
    str, typer.Option("--kubeconfig", help="Kubeconfig. Default: $KUBECONFIG, ~/.kube/config.")
]
Output = Annotated[Format, typer.Option("--format", "-o", help="Form of the result.")]
Name = Annotated[str, typer.Argument(help="Name of the MCPServer.", show_default=False)]
Token = Annotated[
    str,
    typer.Option(
        "--token", envvar="MCPSRV_TOKEN", help="Token to send. Default: that of the server's Secret."
    ),
]
Timeout = Annotated[float, typer.Option("--timeout", help="Seconds to wait at most.")]
Arguments = Annotated[
    list[str] | None,
    typer.Argument(
        help="Arguments: key=value, typed by the tool's schema, or key:=JSON.", show_default=False
    ),
]
Document = Annotated[str, typer.Option("--json", help="Arguments as a JSON object; @FILE or - for stdin.")]


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"mcpsrv {version('mcpserver-operator')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options that stand before the command."""


@app.command("list")
def list_command(
    namespace: Namespace = "",
    everywhere: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Of all namespaces.")] = False,
    context: Context = "",
    kubeconfig: Kubeconfig = "",
    output: Output = Format.TEXT,
) -> None:
    """Show all MCPServers, and why those that are not Ready are not."""
    from mcpsrv.cluster.access import Where
    from mcpsrv.commands import listing

    terminal = Terminal(output)
    run(terminal, listing.run(terminal, Where(namespace, context, kubeconfig), everywhere))


@app.command("tools")
def tools_command(
    name: Name,
    namespace: Namespace = "",
    context: Context = "",
    kubeconfig: Kubeconfig = "",
    output: Output = Format.TEXT,
    token: Token = "",
) -> None:
    """Show a server's tools with their arguments."""
    from mcpsrv.cluster.access import Where
    from mcpsrv.commands import tools

    terminal = Terminal(output)
    run(terminal, tools.run_tools(terminal, Where(namespace, context, kubeconfig), name, token))


@app.command("call")
def call_command(
    name: Name,
    tool: Annotated[str, typer.Argument(help="Name of the tool.", show_default=False)],
    arguments: Arguments = None,
    document: Document = "",
    namespace: Namespace = "",
    context: Context = "",
    kubeconfig: Kubeconfig = "",
    output: Output = Format.TEXT,
    token: Token = "",
) -> None:
    """Call a tool: mcpsrv call time get_current_time timezone=Europe/Berlin."""
    from mcpsrv.cluster.access import Where
    from mcpsrv.commands import tools

    terminal = Terminal(output)
    wanted = tools.Wanted(tool, arguments or (), document)
    run(terminal, tools.run_call(terminal, Where(namespace, context, kubeconfig), name, wanted, token))


@app.command("logs")
def logs_command(
    name: Name,
    relay: Annotated[bool, typer.Option("--relay", help="The relay's log instead of the server's.")] = False,
    previous: Annotated[bool, typer.Option("--previous", "-p", help="Of the run before.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Stay; goes on with the next pod.")] = False,
    tail: Annotated[int | None, typer.Option("--tail", min=0, help="Only the last lines.")] = None,
    namespace: Namespace = "",
    context: Context = "",
    kubeconfig: Kubeconfig = "",
) -> None:
    """Show what a server wrote to stderr, or the relay's log."""
    from mcpsrv.cluster.access import Where
    from mcpsrv.commands import logs

    terminal = Terminal()
    which = logs.Which(relay, previous, follow, tail)
    run(terminal, logs.run(terminal, Where(namespace, context, kubeconfig), name, which))


@app.command("why")
def why_command(
    name: Name,
    namespace: Namespace = "",
    context: Context = "",
    kubeconfig: Kubeconfig = "",
    output: Output = Format.TEXT,
) -> None:
    """Tell what happened to a server, in order, and what to do."""
    from mcpsrv.cluster.access import Where
    from mcpsrv.commands import why

    terminal = Terminal(output)
    run(terminal, why.run(terminal, Where(namespace, context, kubeconfig), name))


@app.command("connect")
def connect_command(
    name: Name,
    client: Annotated[
        Client, typer.Option("--client", help="Whose configuration to print.")
    ] = Client.MCP_JSON,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Local port. 0: any free one.")] = 0,
    namespace: Namespace = "",
    context: Context = "",
    kubeconfig: Kubeconfig = "",
    output: Output = Format.TEXT,
    token: Token = "",
) -> None:
    """Open a local port to a server and print the configuration for a client, token included."""
    from mcpsrv.cluster.access import Where
    from mcpsrv.commands import connect

    terminal = Terminal(output)
    run(terminal, connect.run(terminal, Where(namespace, context, kubeconfig), name, client, port, token))


@app.command("restart")
def restart_command(
    name: Name,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is Ready again.")] = True,
    timeout: Timeout = 180,
    namespace: Namespace = "",
    context: Context = "",
    kubeconfig: Kubeconfig = "",
    output: Output = Format.TEXT,
) -> None:
    """Replace a server's pod, with a fresh budget of retries."""
    from mcpsrv.cluster.access import Where
    from mcpsrv.commands import restart

    terminal = Terminal(output)
    run(terminal, restart.run(terminal, Where(namespace, context, kubeconfig), name, wait, timeout))


@app.command("test")
def try_command(
    file: Annotated[str, typer.Option("--file", "-f", help="Manifests; - for stdin.", show_default=False)],
    arguments: Arguments = None,
    call: Annotated[str, typer.Option("--call", help="Tool to call, with the arguments behind.")] = "",
    document: Document = "",
    name: Annotated[str, typer.Option("--name", help="One MCPServer of the file. Default: all.")] = "",
    timeout: Timeout = 180,
    namespace: Namespace = "",
    context: Context = "",
    kubeconfig: Kubeconfig = "",
    output: Output = Format.TEXT,
    token: Token = "",
) -> None:
    """Run a copy of a server under another name, report on it, remove it."""
    from mcpsrv.cluster.access import Where
    from mcpsrv.commands import tools, trials

    terminal = Terminal(output)
    called = tools.Wanted(call, arguments or (), document) if call else None
    wanted = trials.Wanted(file, name, called, timeout, token)
    run(terminal, trials.run(terminal, Where(namespace, context, kubeconfig), wanted))


@app.command("import")
def import_command(
    file: Annotated[str, typer.Argument(help="The client's configuration; - for stdin.", show_default=False)],
    output_file: Annotated[str, typer.Option("--output", help="File to write. Default: stdout.")] = "",
    apply: Annotated[bool, typer.Option("--apply", help="Apply to the cluster.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="With --apply: wait until all are Ready.")
    ] = True,
    timeout: Timeout = 300,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Import only this server; repeatable.")
    ] = None,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", help="ID=VALUE for ${input:ID}; repeatable.")
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option("--env", help="NAME=VALUE for ${env:NAME}, instead of this shell's.")
    ] = None,
    commands: Annotated[
        list[str] | None,
        typer.Option("--command", help="SERVER=COMMAND: what to run in the image of a docker entry."),
    ] = None,
    with_disabled: Annotated[bool, typer.Option("--with-disabled", help="Import disabled ones too.")] = False,
    skip_unsupported: Annotated[
        bool, typer.Option("--skip-unsupported", help="End with 0 although some were left out.")
    ] = False,
    namespace: Namespace = "",
    context: Context = "",
    kubeconfig: Kubeconfig = "",
    output: Output = Format.TEXT,
) -> None:
    """Make manifests of the servers in claude_desktop_config.json, .vscode/mcp.json or .mcp.json."""
    import os
    import shlex

    from mcpsrv.cluster.access import Where
    from mcpsrv.commands import imports
    from mcpsrv.core.configuration.conversion import Options
    from mcpsrv.core.configuration.placeholders import Answers

    terminal = Terminal(output)

    async def command() -> ExitCode:
        answers = Answers(_pairs(inputs, "--input"), {**os.environ, **_pairs(env, "--env")})
        words = {key: tuple(shlex.split(value)) for key, value in _pairs(commands, "--command").items()}
        options = Options(namespace, answers, words, frozenset(only or ()), with_disabled)
        wanted = imports.Wanted(file, options, output_file, apply, wait, timeout, skip_unsupported)
        return await imports.run(terminal, Where(namespace, context, kubeconfig), wanted)

    run(terminal, command())


def _pairs(words: list[str] | None, option: str) -> dict[str, str]:
    """`KEY=VALUE` words by key. Raises UsageError for one without a key or sign."""
    found = {}
    for word in words or ():
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise UsageError(f"{option} {word!r}: write {option} NAME=VALUE")
        found[key] = value
    return found
