"""What both kinds of cluster offer, and the choice between them."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from devcluster import engines
from devcluster.kind import Kind
from devcluster.layout import Layout
from devcluster.node import Node


class Cluster(Protocol):
    """A cluster of this machine."""

    def become_able(self) -> None:
        """Get the rights that the other calls need; may start this program over."""

    def up(self) -> None:
        """Bring it up; do nothing if it is up."""

    def down(self) -> None:
        """Remove it."""

    def status(self) -> list[str]:
        """Lines for people."""

    def load(self, references: Mapping[str, str]) -> None:
        """Give it images: reference in the image builder to the second name that it also gets."""

    def forget(self, references: Iterable[str]) -> None:
        """Drop the images that these replaced, once nothing asks for them any more."""

    def kubectl_words(self, *words: str) -> list[str]:
        """Argument list of kubectl as administrator."""

    def kubectl(self, *words: str, text_in: str | None = None) -> str:
        """Run kubectl as administrator."""


def choose(where: Layout) -> Cluster:
    """Kind where a Docker engine answers, else the local node."""
    return Kind(where) if engines.docker_answers() else Node(where)
