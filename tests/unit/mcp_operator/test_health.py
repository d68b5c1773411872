"""The probes and the settings."""

import asyncio

import pytest

from mcp_operator import settings
from mcp_operator.handlers import health, pages


async def probe(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    await writer.wait_closed()
    return answer


async def test_alive_while_there_is_no_trouble_and_not_otherwise(unused_tcp_port: int) -> None:
    trouble = ""
    port = unused_tcp_port
    async with pages.served(port, health.pages(lambda: trouble, lambda: "")):
        assert (await probe(port, b"GET /healthz HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 200")
        trouble = "the watches of pods are deaf"
        answer = await probe(port, b"GET /healthz?x=1 HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"deaf" in answer


async def test_not_ready_while_something_is_waited_for_but_alive(unused_tcp_port: int) -> None:
    waiting = "the secrets cannot be listed: forbidden"
    async with pages.served(unused_tcp_port, health.pages(lambda: "", lambda: waiting)):
        answer = await probe(unused_tcp_port, b"GET /readyz HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 503")
        assert answer.endswith(b"the secrets cannot be listed: forbidden\n")
        assert (await probe(unused_tcp_port, b"GET /healthz HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 200")
        waiting = ""
        assert (await probe(unused_tcp_port, b"GET /readyz HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 200")


async def test_trouble_is_no_state_to_be_ready_in(unused_tcp_port: int) -> None:
    async with pages.served(unused_tcp_port, health.pages(lambda: "deaf", lambda: "")):
        assert (await probe(unused_tcp_port, b"GET /readyz HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 503")


@pytest.mark.parametrize("request_line", [b"GET / HTTP/1.1\r\n", b"\r\n", b"\xff\xfe nonsense\r\n"])
async def test_anything_else_is_not_found(request_line: bytes, unused_tcp_port: int) -> None:
    async with pages.served(unused_tcp_port, health.pages(lambda: "", lambda: "")):
        assert (await probe(unused_tcp_port, request_line)).startswith(b"HTTP/1.1 404")


def test_settings_come_from_the_environment() -> None:
    found = settings.from_environment(
        {
            "MCP_OPERATOR_RELAY_IMAGE": "relay:1",
            "MCP_OPERATOR_RUNTIME_IMAGE": "runtime:1",
            "MCP_OPERATOR_IMAGE_PULL_POLICY": "Never",
            "MCP_OPERATOR_NAMESPACES": "a, b c",
            "MCP_OPERATOR_LOG_LEVEL": "debug",
            "MCP_OPERATOR_HEALTH_PORT": "1234",
            "MCP_OPERATOR_RELAY_RESOURCES": '{"limits": {"memory": "1Gi", "cpu": 2}, "requests": {}}',
        }
    )
    assert (found.relay_image, found.runtime_image, found.image_pull_policy) == (
        "relay:1",
        "runtime:1",
        "Never",
    )
    assert found.relay_resources == {"limits": {"memory": "1Gi", "cpu": "2"}}
    assert (found.namespaces, found.log_level, found.health_port) == (("a", "b", "c"), "DEBUG", 1234)


def test_without_an_environment_all_namespaces_are_served() -> None:
    assert settings.from_environment({}).namespaces == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MCP_OPERATOR_IMAGE_PULL_POLICY", "Sometimes"),
        ("MCP_OPERATOR_LOG_LEVEL", "LOUD"),
        ("MCP_OPERATOR_HEALTH_PORT", "http"),
        ("MCP_OPERATOR_METRICS_PORT", "99999"),
        ("MCP_OPERATOR_RELAY_RESOURCES", "256Mi"),
        ("MCP_OPERATOR_RELAY_RESOURCES", '["256Mi"]'),
        ("MCP_OPERATOR_RELAY_RESOURCES", '{"limits": {"memory": "much"}}'),
        ("MCP_OPERATOR_RELAY_RESOURCES", '{"limits": "much"}'),
        ("MCP_OPERATOR_NETWORK", "[]"),
        ("MCP_OPERATOR_NETWORK", "{"),
        ("MCP_OPERATOR_NETWORK", '{"notInternet": ["10.0.0.1/8"]}'),
    ],
)
def test_a_setting_without_sense_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(settings.SettingsError, match=name):
        settings.from_environment({name: value})
