"""Command line: `python -m devcluster COMMAND`."""

import argparse
import sys
from collections.abc import Callable

from devcluster import debian, gotools, layout, say
from devcluster.node import Node


def up(_: argparse.Namespace) -> None:
    """Bring the cluster up."""
    debian.become_root()
    Node(layout.of_user()).up()


def down(_: argparse.Namespace) -> None:
    """Stop the cluster."""
    debian.become_root()
    Node(layout.of_user()).down()


def kubeconfig(_: argparse.Namespace) -> None:
    """Print the kubeconfig's path."""
    print(layout.of_user().kubeconfig)


def status(_: argparse.Namespace) -> None:
    """Say what runs."""
    print("\n".join(Node(layout.of_user()).status()))


def tool(arguments: argparse.Namespace) -> None:
    """Print the path of a program."""
    print(gotools.tool(arguments.name, layout.of_user()))


COMMANDS: dict[str, Callable[[argparse.Namespace], None]] = {
    command.__name__: command for command in (up, down, kubeconfig, status, tool)
}


def main() -> int:
    """Run one command; 1 if it failed for a reason that was told."""
    parser = argparse.ArgumentParser(prog="devcluster", description=__doc__)
    subparsers = parser.add_subparsers(dest="command", required=True)
    for name, command in COMMANDS.items():
        sub = subparsers.add_parser(name, help=command.__doc__)
        if name == "tool":
            sub.add_argument("name", choices=gotools.names())
    arguments = parser.parse_args()
    try:
        COMMANDS[arguments.command](arguments)
    except say.ClusterError as error:
        say.line(f"devcluster: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
