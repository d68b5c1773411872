"""Entries that name a URL become remote servers, and no value of a header stands in the manifest."""

from typing import Any

import pytest

from mcp_operator.core.api import MCPServerSpec
from mcpsrv.core.configuration import conversion, entry
from mcpsrv.core.configuration.conversion import Imported, Options
from mcpsrv.core.configuration.placeholders import Answers

Json = dict[str, Any]


def one(raw: Json, **inputs: str) -> Imported:
    configuration = entry.read({"mcpServers": {"far": raw}})
    (found,) = conversion.convert(configuration, Options(answers=Answers(inputs=inputs)))
    return found


def test_a_url_becomes_a_remote_server() -> None:
    found = one({"url": "https://mcp.example.com/mcp"})
    (server,) = found.manifests
    assert server["spec"] == {"remote": {"url": "https://mcp.example.com/mcp"}}
    assert (found.notes, found.skipped) == ((), False)


def test_headers_become_a_secret_and_references_to_it() -> None:
    raw = {
        "type": "sse",
        "url": "https://mcp.example.com/sse",
        "headers": {"Authorization": "Bearer ${input:token}", "X-Team": "blue"},
    }
    found = one(raw, token="abc-123")
    secret, server = found.manifests
    assert secret["metadata"]["name"] == "far-env"
    assert secret["stringData"] == {"Authorization": "Bearer abc-123", "X-Team": "blue"}
    assert server["spec"]["remote"] == {
        "url": "https://mcp.example.com/sse",
        "transport": "SSE",
        "headersFrom": [
            {"name": "Authorization", "secretKeyRef": {"name": "far-env", "key": "Authorization"}},
            {"name": "X-Team", "secretKeyRef": {"name": "far-env", "key": "X-Team"}},
        ],
    }
    assert MCPServerSpec.parse(server["spec"]).remote
    assert "abc-123" not in str((server, found.notes))
    assert found.secrets == ("Authorization", "X-Team")


def test_an_address_of_a_private_network_gets_the_way_there_and_a_word_about_it() -> None:
    found = one({"url": "http://tools.lab.internal:8080/mcp"})
    assert found.manifests[-1]["spec"]["network"] == {"egress": "All"}
    assert "egressRules" in found.notes[0].message


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"headers": {"Accept": "text/html"}}, "headers.Accept"),
        ({"headers": {"X-Key": None}}, "headers.X-Key"),
        ({"env": {"A": "b"}}, "env"),
        ({"command": "npx", "args": ["p"]}, "command"),
    ],
)
def test_what_has_no_meaning_there_is_left_out_and_told(raw: Json, field: str) -> None:
    found = one({"url": "https://mcp.example.com/mcp", **raw})
    assert found.manifests[-1]["spec"] == {"remote": {"url": "https://mcp.example.com/mcp"}}
    assert f"mcpServers.far.{field}" in [note.field for note in found.notes]
