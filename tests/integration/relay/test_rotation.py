"""The clients' token changes while the relay serves: no restart, no lost session."""

from pathlib import Path
from typing import Any

import pytest

from mcp_sidecar.web import tokens
from relaykit.client import Client, body
from relaykit.waiting import eventually


async def test_both_tokens_are_valid_in_between_and_the_session_goes_on(
    make_pod: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "LOOK_SECONDS", 0.0)
    file = tmp_path / "token"
    file.write_text("old")
    pod = await make_pod(token=b"old", token_file=file)
    await pod.until("Connected")
    async with Client(pod.url, "old") as old, Client(pod.url, "new") as new:
        await old.connect()
        new.sid = old.sid
        assert (await new.post(body("tools/list", 1))).status_code == 401
        file.write_text("new\nold\n")

        async def follows(client: Client, status: int) -> bool:
            return (await client.post(body("tools/list", 2))).status_code == status

        await eventually(lambda: follows(new, 200))
        assert (await old.post(body("tools/list", 3))).status_code == 200
        file.write_text("new\n")
        await eventually(lambda: follows(old, 401))
        assert (await new.post(body("tools/list", 4))).status_code == 200
