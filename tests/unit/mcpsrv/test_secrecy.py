"""Which values are kept in a Secret."""

import pytest

from mcpsrv.core.configuration import secrecy


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_TOKEN", "abc123"),
        ("apiKey", "abc123"),
        ("BRAVE_API_KEY", "abc123"),
        ("DB_PASSWORD", "x"),
        ("CLIENT_SECRET", "x"),
        ("AWS_SECRET_ACCESS_KEY", "wJalr"),
        ("SLACK_WEBHOOK_URL", "https://example.org/x"),
        ("CONNECTION_STRING", "Server=db"),
        ("JIRA_PAT", "x"),
        ("SENTRY_DSN", "https://a@b/1"),
        ("AUTHORIZATION", "x"),
        ("DATABASE_URL", "postgres://user:secret@host/db"),
        ("REDIS", "redis://:secret@host:6379"),
        ("OTHER", "sk-abcdefghijklmnopqrst"),
        ("OTHER", "ghp_0123456789abcdefghijABCDEFGHIJ0123"),
        ("OTHER", "glpat-0123456789abcdefghij"),
        ("OTHER", "xoxb-123456789012-abcdef"),
        ("OTHER", "AKIAIOSFODNN7EXAMPLE"),
        ("OTHER", "AIza0123456789abcdefghijABCDEFGHIJ01234"),
        ("OTHER", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdef"),
        ("OTHER", "-----BEGIN RSA PRIVATE KEY-----\nabc"),
        ("HEADERS", '{"Authorization": "Bearer ntn_abcdef"}'),
        ("ENDPOINT", "https://example.org/mcp?api_key=abcdef12"),
        ("OTHER", "d41d8cd98f00b204e9800998ecf8427e"),
        ("OTHER", "aB3dEfGh1jKlMn0pQrStUvWxYz012345"),
    ],
)
def test_a_secret_is_known_by_its_name_or_by_its_value(name: str, value: str) -> None:
    assert secrecy.reason(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LOG_LEVEL", "debug"),
        ("MAX_TOKENS", "4096"),
        ("TOKEN_LIMIT", "4096"),
        ("AUTH_URL", "https://login.example.org"),
        ("KEY_FILE", "/home/me/key.pem"),
        ("USE_TOKEN", "true"),
        ("API_KEY", ""),
        ("AUTHOR", "anna"),
        ("KEYBOARD", "de"),
        ("TIMEZONE", "Europe/Berlin"),
        ("URL", "https://example.org/path?page=2"),
        ("DATABASE_URL", "postgres://host/db"),
        ("ALLOWED_DIRECTORIES", "/Users/anna/Desktop"),
        ("", "@modelcontextprotocol/server-sequential-thinking"),
        ("", "mcp-server-time"),
    ],
)
def test_what_is_no_secret_stays_readable(name: str, value: str) -> None:
    assert secrecy.reason(name, value) == ""


def test_the_reason_never_holds_the_value() -> None:
    assert "hunter22" not in secrecy.reason("PASSWORD", "hunter22")
