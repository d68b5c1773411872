"""Fixtures of the attack suite."""

from collections.abc import AsyncIterator

import pytest

from clusterkit import kube as k
from clusterkit.servers import Server, standing


@pytest.fixture
async def victim(kube: k.Kube, namespace: str) -> AsyncIterator[Server]:
    """One server for all tests of a module; the end of the namespace ends it."""
    async with standing(kube, namespace, "victim") as server:
        yield server
