"""The parts of the faults that need no cluster."""

import os
import socket
import tempfile
from pathlib import Path

import pytest

from chaoskit import injectors
from clusterkit import sockets


@pytest.fixture
def pair() -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection to a socket with the launcher's name: the accepted one first."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(Path(folder, "server.sock.new")))
        listener.listen()
        client = socket.socket(socket.AF_UNIX)
        client.connect(listener.getsockname())
        accepted, _ = listener.accept()
    return accepted, client


def test_the_connection_between_launcher_and_relay_is_found_and_cut_from_outside(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    accepted, client = pair
    with accepted, client:
        assert sockets.connected_socket(os.getpid(), "server.sock") == accepted.fileno()
        try:
            sockets.shut_down(os.getpid(), "server.sock")
        except OSError as error:
            pytest.skip(f"this machine does not allow it: {error}")
        client.settimeout(5)
        assert client.recv(1) == b""


def test_a_launcher_without_a_connection_is_no_target() -> None:
    with pytest.raises(LookupError, match=r"no connection to server\.sock"):
        sockets.shut_down(os.getpid(), "server.sock")


def test_a_cut_network_drops_packets_in_both_directions_wherever_they_pass() -> None:
    rules = injectors.cut_rules("mcp_chaos_raw", "10.0.0.7")
    assert rules.startswith("table ip mcp_chaos_raw {")
    for hook in ("prerouting", "output", "postrouting"):
        assert f"type filter hook {hook}" in rules
    assert rules.count("ip saddr 10.0.0.7 drop; ip daddr 10.0.0.7 drop;") == 3
