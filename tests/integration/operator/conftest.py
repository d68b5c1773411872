from collections.abc import Callable

import pytest

from relaykit.ports import free_port


@pytest.fixture
def unused_tcp_port() -> int:
    """A port for a process that takes a while to listen on it: nobody else gets it before."""
    return free_port()


@pytest.fixture
def unused_tcp_port_factory() -> Callable[[], int]:
    return free_port
