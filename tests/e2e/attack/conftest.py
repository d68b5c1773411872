"""Fixtures of the attack suite."""

from collections.abc import AsyncIterator

import pytest

from clusterkit import kube as k
from clusterkit.servers import Server


@pytest.fixture
async def victim(kube: k.Kube, namespace: str) -> AsyncIterator[Server]:
    """One server for all tests of a module; the end of the namespace ends it."""
    server = Server(kube, namespace, "victim")
    await server.apply()
    await server.ready()
    yield server
    await server.close()
