"""An image that the node has, in a registry that runs as a process of the node."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clusterkit import manifests, node
from clusterkit.manifests import Json
from devcluster import network
from registrykit import server
from registrykit.images import Shelf

TLS_PORT = "5056"


@contextmanager
def image(
    folder: Path,
    config: Json,
    auth: Json | None = None,
    authorization: str = "",
    tls: server.Identity | None = None,
) -> Iterator[str]:
    """The test image under a name in that registry, there with this `config`; gives the name.

    Without `tls` the registry is the one that the operator speaks plain HTTP with.
    """
    if node.is_kind():
        pytest.skip("the registry is a process of the node, which a kind node cannot reach under one name")
    address, _, port = network.REGISTRY.partition(":")
    port = TLS_PORT if tls else port
    believed = ssl.create_default_context(cafile=tls.authority) if tls else True
    with server.running(folder, int(port), auth, address, tls) as host:
        headers = {"Authorization": authorization} if authorization else {}
        Shelf(f"http{'s' if tls else ''}://{host}/v2/team/raw", headers, believed).image("1", config)
        name = f"{host}/team/raw:1"
        node.tag_image(manifests.test_image(), name)
        yield name
        node.remove_image(name)
