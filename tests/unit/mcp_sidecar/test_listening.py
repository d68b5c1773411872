"""The sockets that the relay listens on."""

import socket

import pytest

from mcp_sidecar.web.server import listen


def reaches(family: socket.AddressFamily, host: str, port: int) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(5)
        return client.connect_ex((host, port)) == 0


def test_without_an_address_both_families_are_served() -> None:
    with listen("", 0) as listener:
        port = listener.getsockname()[1]
        assert reaches(socket.AF_INET, "127.0.0.1", port)
        if socket.has_dualstack_ipv6():
            assert reaches(socket.AF_INET6, "::1", port)


def test_a_machine_without_ipv6_serves_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    with listen("", 0) as listener:
        assert listener.family is socket.AF_INET
        assert reaches(socket.AF_INET, "127.0.0.1", listener.getsockname()[1])


def test_an_address_of_either_family_is_served_alone() -> None:
    with listen("127.0.0.1", 0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"
    if socket.has_dualstack_ipv6():
        with listen("::1", 0) as listener:
            assert listener.getsockname()[0] == "::1"
