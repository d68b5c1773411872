"""Which token the command line sends."""

import base64
from typing import Any, cast

import pytest

from mcpsrv import session
from mcpsrv.cluster.kube import Kube


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
