"""Which token the command line sends, and what it says when that is refused."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from mcpsrv import session
from mcpsrv.cluster.kube import Kube
from mcpsrv.core.errors import CliError

JWT = {"issuer": "https://issuer.example", "audiences": ["https://a.example/mcp", "b"], "subjects": ["ci-*"]}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


class Secrets:
    """An API server that has one Secret."""

    def __init__(self, value: bytes) -> None:
        self.value = value

    async def get(self, _kind: Any, name: str) -> dict[str, Any]:
        assert name == "mine"
        return {"data": {"token": base64.b64encode(self.value).decode()}}


@pytest.mark.parametrize("value", [b"new", b"new\n", b"\n new \r\nold\n"])
async def test_while_a_token_is_rotated_the_first_one_is_sent(value: bytes) -> None:
    server = {"spec": {"auth": {"bearer": {"secretRef": {"name": "mine"}}}}, "metadata": {"name": "x"}}
    assert await session.token(cast("Kube", Secrets(value)), server) == "new"


async def _refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    body = b'{"error":"Unauthorized"}'
    head = f"HTTP/1.1 401 Unauthorized\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
    writer.close()


@asynccontextmanager
async def refusing(*_where: object, **_how: object) -> AsyncIterator[int]:
    """A relay that knows no token, in place of the way to the pod."""
    async with await asyncio.start_server(_refuse, "127.0.0.1", 0) as listener:
        yield listener.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("auth", "given", "words"),
    [
        (
            {"type": "JWT", "jwt": JWT},
            "another",
            ("(401)", "--token", "by https://issuer.example", "https://a.example/mcp or b", "ci-*"),
        ),
        ({}, "another", ("(401)", "--token", "Secret")),
        ({"bearer": {"secretRef": {"name": "mine"}}}, "", ("(401)", "Secret", "mcpsrv restart x")),
    ],
)
async def test_a_token_that_is_refused_is_told_with_what_to_pass_instead(
    monkeypatch: pytest.MonkeyPatch, auth: dict[str, Any], given: str, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(session, "forwarded", refusing)
    server = {"spec": {"auth": auth}, "metadata": {"name": "x"}, "status": READY}
    with pytest.raises(CliError) as told:
        async with session.opened(cast("Kube", Secrets(b"old")), server, given):
            pytest.fail("the session opened")
    assert [word for word in words if word not in str(told.value)] == []
    assert "another" not in str(told.value)
