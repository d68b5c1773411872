"""The copy that a test runs: names of its own, nothing of what is live."""

from datetime import UTC, datetime
from typing import Any

import pytest

from mcpsrv.core import clientconfig, toolview, trial
from mcpsrv.core.clientconfig import Client
from mcpsrv.core.errors import UsageError

Json = dict[str, Any]


def server(**spec: Any) -> Json:
    return {
        "apiVersion": "mcp-session.dev/v1alpha1", "kind": "MCPServer",
        "metadata": {"name": "demo", "namespace": "live", "labels": {"a": "b"}},
        "spec": {"command": ["x"], **spec},
    }  # fmt: skip


SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"a": "b"}}
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "keys"}, "data": {"a": "b"}}


def duplicate(original: Json, *documents: Json) -> trial.Copy:
    return trial.duplicate(original, [*documents, original], "tools", "abc123", "2026-01-01T00:00:00Z")


def test_the_copy_has_names_of_its_own_and_everything_that_the_file_has_for_it() -> None:
    original = server(
        env=[
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "a"}}},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "elsewhere", "key": "a"}}},
            {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "keys", "key": "a"}}},
        ],
        envFrom=[{"secretRef": {"name": "keys"}}],
        volumes=[
            {"name": "v", "secret": {"secretName": "keys"}},
            {"name": "w", "projected": {"sources": [{"secret": {"name": "keys"}}]}},
        ],
        imagePullSecrets=[{"name": "keys"}, {"name": "pull"}],
        auth={"bearer": {"secretRef": {"name": "keys"}}},
    )
    copied = duplicate(original, SECRET, MAP)
    assert [(one["kind"], one["metadata"]["name"]) for one in copied.objects] == [
        ("Secret", "keys-abc123"), ("ConfigMap", "keys-abc123"), ("MCPServer", "demo-abc123"),
    ]  # fmt: skip
    assert {one["metadata"]["namespace"] for one in copied.objects} == {"tools"}
    spec = copied.server["spec"]
    assert [entry["valueFrom"].popitem()[1]["name"] for entry in spec["env"]] == [
        "keys-abc123", "elsewhere", "keys-abc123",
    ]  # fmt: skip
    assert spec["envFrom"] == [{"secretRef": {"name": "keys-abc123"}}]
    assert spec["volumes"][0]["secret"] == {"secretName": "keys-abc123"}
    assert spec["volumes"][1]["projected"] == {"sources": [{"secret": {"name": "keys-abc123"}}]}
    assert spec["imagePullSecrets"] == [{"name": "keys-abc123"}, {"name": "pull"}]
    assert spec["auth"] == {"bearer": {"secretRef": {"name": "keys-abc123"}}}
    assert original["spec"]["envFrom"] == [{"secretRef": {"name": "keys"}}]


def test_the_copy_writes_to_no_live_claim_does_not_retry_and_is_not_suspended() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "live"}}]
    copied = duplicate(server(volumes=volumes, suspend=True, recovery={"maxRetries": 9, "stableSeconds": 5}))
    spec = copied.server["spec"]
    assert spec["volumes"] == [{"name": "data", "emptyDir": {}}]
    assert "claim live" in copied.notes[0]
    assert spec["recovery"] == {"maxRetries": 0, "stableSeconds": 5, "retryAfterErrorSeconds": 0}
    assert "suspend" not in spec


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([], "holds no MCPServer"),
        ([SECRET, None, "x"], "holds no MCPServer"),
        ([{**server(), "apiVersion": "v1"}], "apiVersion must be mcp-session.dev/v1alpha1, it is 'v1'"),
        ([{**server(), "spec": None}], "lacks metadata.name or spec"),
    ],
)
def test_a_file_without_a_usable_server_is_refused(documents: list[Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        trial.servers(documents)


def test_only_a_copy_whose_time_is_over_may_be_swept_away() -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert trial.is_over("2026-01-01T11:00:00+00:00", now)
    assert not trial.is_over("2026-01-01T13:00:00+00:00", now)
    assert not trial.is_over("", now)


@pytest.mark.parametrize(
    ("client", "token", "block"),
    [
        (
            Client.MCP_JSON,
            "t",
            {"mcpServers": {"demo": {"type": "http", "url": "U", "headers": {"Authorization": "Bearer t"}}}},
        ),
        (Client.VSCODE, "", {"servers": {"demo": {"type": "http", "url": "U"}}}),
        (
            Client.CLAUDE,
            "",
            {
                "mcpServers": {
                    "demo": {"command": "npx", "args": ["-y", "mcp-remote", "U", "--transport", "http-only"]}
                }
            },
        ),
    ],
)
def test_the_block_for_a_client_is_what_that_client_reads(client: Client, token: str, block: Json) -> None:
    assert clientconfig.block(client, "demo", "U", token) == block


def test_the_token_for_claude_desktop_stands_in_no_argument() -> None:
    made = clientconfig.block(Client.CLAUDE, "demo", "U", "t0ken")["mcpServers"]["demo"]
    assert "t0ken" not in " ".join(made["args"])
    assert made["env"] == {"AUTH_HEADER": "Bearer t0ken"}


def test_contents_of_every_kind_are_told() -> None:
    blocks = [
        {"type": "text", "text": "hello"},
        {"type": "image", "mimeType": "image/png", "data": "AAAA"},
        {"type": "resource", "resource": {"uri": "a://b", "text": "body"}},
        {"type": "resource_link", "uri": "a://c"},
    ]
    assert list(toolview.contents({"content": blocks})) == [
        "hello", "[image, image/png, 3 bytes; -o json has it]", "[resource, a://b]\nbody", "[resource_link, a://c]",
    ]  # fmt: skip
    assert list(toolview.contents({"content": [], "structuredContent": {"a": 1}})) == ['{\n  "a": 1\n}']


def test_arguments_of_a_tool_are_told_with_type_and_meaning() -> None:
    schema = {
        "properties": {
            "zone": {"type": "string", "description": "IANA name\nmore"},
            "level": {"enum": ["a", "b"]},
            "n": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["zone"],
    }
    assert list(toolview.arguments({"inputSchema": schema})) == [
        "zone=string  required  IANA name", "level=a|b", "n=integer|null",
    ]  # fmt: skip
