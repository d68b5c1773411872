"""Clients of both eras of MCP at one server, whichever of them it speaks."""

import pytest

from clusterkit.clients import CLIENT_PYTHON, call_from_here
from clusterkit.servers import Servers, status

SDK = (CLIENT_PYTHON, "/servers/sdk.py")


@pytest.mark.parametrize(("protocol", "revision"), [("Auto", "2025-11-25"), ("Modern", "2026-07-28")])
async def test_a_server_that_speaks_both_eras_is_spoken_with_as_chosen_and_serves_both(
    servers: Servers, protocol: str, revision: str
) -> None:
    server = await servers.ready(protocol.lower(), SDK, session={"protocol": protocol})
    assert status(await server.get(), "session", "protocolVersion") == revision
    client = await server.client()
    assert await client.call("echo", text="with a session") == "with a session"
    seen = await call_from_here(server, "echo", text="without one")
    assert (seen["revision"], seen["text"]) == ("2026-07-28", ["without one"])
