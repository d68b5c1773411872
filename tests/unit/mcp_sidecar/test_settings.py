import json
from pathlib import Path
from typing import Any

import pytest

from mcp_relay_api import paths
from mcp_sidecar.core.bucket import NONE, Limits
from mcp_sidecar.core.claims import ALGORITHMS, Rules
from mcp_sidecar.settings import SettingsError, from_environment


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    for name in (paths.TOKEN_FILE, paths.ADMIN_TOKEN_FILE, paths.SIGNING_KEY_FILE):
        (tmp_path / name).write_text(f"{name}-value\n")
    return {
        paths.ENV_SERVER_NAME: "demo",
        paths.ENV_SERVER_UID: "uid",
        "MCP_RELAY_SECRETS_DIR": str(tmp_path),
    }


def test_little_has_to_be_set_and_secrets_come_from_files(environment: dict[str, str]) -> None:
    settings = from_environment(environment)
    assert (settings.server_name, settings.token, settings.admin_token) == (
        "demo",
        b"token-value",
        b"admin-token-value",
    )
    assert (settings.port, settings.admin_port) == (paths.MCP_PORT, paths.ADMIN_PORT)
    assert (settings.call_timeout, settings.startup_timeout, settings.idle_timeout) == (30, 120, 7200)
    assert (settings.max_clients, settings.max_message_bytes) == (1000, 16 * 1024 * 1024)
    assert (settings.protocol, settings.client_capabilities) == ("Auto", ())
    assert (settings.max_call, settings.on_server_restart) == (0, "Resume")
    assert (settings.limits, settings.audit) == (NONE, False)


def test_every_setting_of_the_contract_is_read(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "resolv.conf").write_text("search ns.svc.corp.example svc.corp.example\n")
    environment |= {
        paths.ENV_ALLOWED_HOSTS: "a.example, b.example:80, demo.ns.svc.*",
        "MCP_RELAY_RESOLV_CONF": str(tmp_path / "resolv.conf"),
        paths.ENV_STARTUP_TIMEOUT: "5",
        paths.ENV_CALL_TIMEOUT: "2.5",
        paths.ENV_IDLE_TIMEOUT: "7",
        paths.ENV_MAX_CALL: "600",
        paths.ENV_ON_SERVER_RESTART: "Expire",
        paths.ENV_MAX_CLIENTS: "8",
        paths.ENV_MAX_MESSAGE_BYTES: "9",
        paths.ENV_AUTH: "None",
        paths.ENV_SERVER_NAMESPACE: "here",
        paths.ENV_PROTOCOL: "Modern",
        paths.ENV_HTTP_SSE: "true",
        paths.ENV_CLIENT_CAPABILITIES: "sampling, elicitation",
        paths.ENV_CALLS_PER_MINUTE: "60",
        paths.ENV_CALL_BURST: "5",
        paths.ENV_CONCURRENT_CALLS: "2",
        paths.ENV_AUDIT: "Calls",
    }
    settings = from_environment(environment)
    hosts = ("a.example", "b.example:80", "demo.ns.svc.corp.example", "demo.ns.svc.cluster.local")
    assert settings.allowed_hosts == hosts
    assert (settings.startup_timeout, settings.call_timeout, settings.idle_timeout) == (5, 2.5, 7)
    assert (settings.max_clients, settings.max_message_bytes, settings.token) == (8, 9, None)
    assert (settings.protocol, settings.client_capabilities) == ("Modern", ("sampling", "elicitation"))
    assert (settings.max_call, settings.on_server_restart) == (600, "Expire")
    assert (settings.server_namespace, settings.http_sse) == ("here", True)
    assert (settings.limits, settings.audit) == (Limits(per_minute=60, burst=5, concurrent=2), True)


class Watched(dict[str, str]):
    """Settings that know which of them were asked for."""

    asked: set[str]

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        return super().get(name, default)


def test_the_contract_names_no_setting_that_nobody_reads(environment: dict[str, str]) -> None:
    watched = Watched(environment)
    watched.asked = set()
    from_environment(watched)
    watched |= {paths.ENV_AUTH: "JWT", paths.ENV_JWT: '{"issuer": "https://i", "audiences": ["a"]}'}
    from_environment(watched)
    assert {getattr(paths, name) for name in vars(paths) if name.startswith("ENV_")} <= watched.asked


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (paths.ENV_SERVER_NAME, "", "is not set"),
        (paths.ENV_AUTH, "Basic", "is not one of Bearer, JWT, None"),
        (paths.ENV_ON_SERVER_RESTART, "expire", "is not one of Resume, Expire"),
        (paths.ENV_MAX_CALL, "-1", "is not a number above 0"),
        (paths.ENV_PROTOCOL, "modern", "is not one of Auto, Legacy, Modern"),
        (paths.ENV_CALL_TIMEOUT, "soon", "is not a number above 0"),
        (paths.ENV_MAX_CLIENTS, "0", "is not a number above 0"),
        (paths.ENV_IDLE_TIMEOUT, "nan", "is not a number above 0"),
        (paths.ENV_CLIENT_CAPABILITIES, "sampling,mind-reading", "'mind-reading' is not one of sampling"),
        ("MCP_RELAY_SECRETS_DIR", "/nowhere", "cannot be read"),
    ],
)
def test_a_wrong_setting_is_named(environment: dict[str, str], name: str, value: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        from_environment({**environment, name: value})


ISSUED = {"issuer": "https://issuer.example", "audiences": ["a", "b"]}


def test_the_rules_for_signed_tokens_are_read(environment: dict[str, str]) -> None:
    (Path(environment["MCP_RELAY_SECRETS_DIR"]) / "token").unlink()
    told = {**ISSUED, "algorithms": ["ES256"], "clockSkewSeconds": 0, "subjectClaim": "oid"}
    told |= {"subjects": ["a*"], "resource": "r"}
    settings = from_environment({**environment, paths.ENV_AUTH: "JWT", paths.ENV_JWT: json.dumps(told)})
    assert settings.token is None
    assert settings.jwt == Rules(
        issuer="https://issuer.example",
        audiences=("a", "b"),
        algorithms=("ES256",),
        clock_skew=0.0,
        subject_claim="oid",
        subjects=("a*",),
        resource="r",
    )
    settings = from_environment({**environment, paths.ENV_AUTH: "JWT", paths.ENV_JWT: json.dumps(ISSUED)})
    assert settings.jwt is not None
    assert (settings.jwt.algorithms, settings.jwt.subject_claim) == (ALGORITHMS, "sub")


@pytest.mark.parametrize(
    "changes",
    [
        {"algorithms": ["HS256"]},
        {"algorithms": ["RS256", "none"]},
        {"issuer": ""},
        {"audiences": []},
        {"audiences": 7},
        {"clockSkewSeconds": 301},
        {"clockSkewSeconds": "nan"},
    ],
)
def test_rules_without_sense_let_no_relay_start(environment: dict[str, str], changes: Any) -> None:
    told = json.dumps({**ISSUED, **changes})
    with pytest.raises(SettingsError, match=paths.ENV_JWT):
        from_environment({**environment, paths.ENV_AUTH: "JWT", paths.ENV_JWT: told})


def test_an_empty_secret_is_refused(environment: dict[str, str]) -> None:
    (Path(environment["MCP_RELAY_SECRETS_DIR"]) / "token").write_text("\n")
    with pytest.raises(SettingsError, match="is empty"):
        from_environment(environment)
