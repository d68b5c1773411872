"""`python -m devcluster COMMAND`. People read standard error; standard output has answers only."""

import argparse
import sys
from collections.abc import Callable

from devcluster import cleaning, cluster, demo, gotools, install, layout, release, say


def up(where: layout.Layout) -> None:
    """bring the cluster up"""
    chosen = cluster.choose(where)
    chosen.become_able()
    chosen.up()


def down(where: layout.Layout) -> None:
    """stop the cluster and remove what it left"""
    chosen = cluster.choose(where)
    chosen.become_able()
    chosen.down()


def status(where: layout.Layout) -> None:
    """say what runs"""
    print("\n".join(cluster.choose(where).status()))


def kubeconfig(where: layout.Layout) -> None:
    """print the kubeconfig's path"""
    print(where.kubeconfig)


def images(where: layout.Layout) -> None:
    """build the images that changed"""
    cluster.choose(where).become_able()
    install.build(where)


def load(where: layout.Layout) -> None:
    """build the images that changed and give them to the cluster"""
    chosen = cluster.choose(where)
    chosen.become_able()
    install.load(chosen, install.build(where))


def load_public(where: layout.Layout) -> None:
    """the same, with the images that some public servers need"""
    chosen = cluster.choose(where)
    chosen.become_able()
    install.load(chosen, install.build(where, public=True))


def install_operator(where: layout.Layout) -> None:
    """build and load the images that changed, install or upgrade the operator"""
    chosen = cluster.choose(where)
    chosen.become_able()
    references = install.build(where)
    install.load(chosen, references)
    install.install(chosen, where, references)


def demonstrate(where: layout.Layout) -> None:
    """apply the examples and call their tools, from a pod and from here"""
    demo.run(cluster.choose(where))


def clean(where: layout.Layout) -> None:
    """stop the cluster and remove every cache"""
    down(where)
    cleaning.remove_caches(where)


COMMANDS: dict[str, Callable[[layout.Layout], None]] = {
    "up": up,
    "down": down,
    "status": status,
    "kubeconfig": kubeconfig,
    "images": images,
    "load": load,
    "load-public": load_public,
    "install": install_operator,
    "demo": demonstrate,
    "clean": clean,
}


def parse(words: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="devcluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, command in COMMANDS.items():
        commands.add_parser(name, help=command.__doc__)
    tool = commands.add_parser("tool", help="print the path of a program, built now if need be")
    tool.add_argument("name", choices=gotools.names())
    released = commands.add_parser("release", help="push the images; print the file with the chart's values")
    released.add_argument("registry", help="and path, for example registry.example.com/team")
    released.add_argument("tag", help="for example 1.0.0")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    """Run one command; 1 if it failed for a reason that was told."""
    arguments = parse(words)
    where = layout.of_user()
    try:
        if arguments.command == "tool":
            print(gotools.tool(arguments.name, where))
        elif arguments.command == "release":
            cluster.choose(where).become_able()
            print(release.run(where, arguments.registry, arguments.tag))
        else:
            COMMANDS[arguments.command](where)
    except say.ClusterError as error:
        say.line(f"devcluster: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
