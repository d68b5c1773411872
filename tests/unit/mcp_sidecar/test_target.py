"""What the relay is told of a remote server."""

import json
from typing import Any

import pytest

from mcp_sidecar.core.target import Header, Origin, TargetError, elsewhere, parse, read

HERE = Origin("https", "a.example", 443)


@pytest.mark.parametrize(
    ("url", "origin", "path"),
    [
        ("https://a.example", HERE, "/"),
        ("https://A.example:443/mcp?x=1", HERE, "/mcp?x=1"),
        ("http://a.example/mcp", Origin("http", "a.example", 80), "/mcp"),
        ("http://[::1]:8080/mcp", Origin("http", "::1", 8080), "/mcp"),
    ],
)
def test_a_url_is_an_origin_and_a_path(url: str, origin: Origin, path: str) -> None:
    assert parse(url) == (origin, path)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://a.example", "http"),
        ("/mcp", "http"),
        ("https://", "host"),
        ("https://user:password@a.example/", "Secret"),
        ("https://a.example:x/", "URL"),
        ("https://a.example/ä", "percent"),
        ("https://a.example/a b", "percent"),
    ],
)
def test_what_is_no_url_of_a_server_is_refused_with_the_reason(url: str, why: str) -> None:
    with pytest.raises(TargetError, match=why):
        parse(url)


def test_the_host_is_named_with_its_port_unless_that_is_the_usual_one() -> None:
    assert HERE.authority == "a.example"
    assert Origin("http", "::1", 8080).authority == "[::1]:8080"


@pytest.mark.parametrize(
    ("location", "origin", "path"),
    [
        ("/mcp/", HERE, "/mcp/"),
        ("https://a.example/b", HERE, "/b"),
        ("?x=1", HERE, "/mcp?x=1"),
        ("//b.example/mcp", Origin("https", "b.example", 443), "/mcp"),
        ("http://a.example/mcp", Origin("http", "a.example", 80), "/mcp"),
        ("https://a.example:8443/mcp", Origin("https", "a.example", 8443), "/mcp"),
    ],
)
def test_a_location_says_whether_it_leads_to_the_same_server(
    location: str, origin: Origin, path: str
) -> None:
    assert elsewhere(HERE, "/mcp", location) == (origin, path)


def told(**changes: Any) -> str:
    return json.dumps({"url": "https://a.example/mcp", **changes})


def test_a_whole_description() -> None:
    header = {"name": "Authorization", "prefix": "Bearer ", "file": "remote-header-0"}
    target = read(
        told(transport="SSE", headers=[header], caFile="ca", backoffSeconds=[1, 2], retryAfterErrorSeconds=0)
    )
    assert (target.origin, target.path, target.transport) == (HERE, "/mcp", "SSE")
    assert target.headers == (Header("Authorization", "remote-header-0", "Bearer "),)
    assert (target.ca_file, target.backoff, target.slow) == ("ca", (1.0, 2.0), 0.0)


def test_a_query_is_not_shown() -> None:
    assert read(told(url="https://a.example/mcp?key=secret")).url == "https://a.example/mcp"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "JSON"),
        ("[]", "url"),
        (told(transport="stdio"), "transport"),
        (told(headers=[{"name": "X"}]), "file"),
        (told(headers=[{"name": "Host", "file": "f"}]), "own"),
        (told(headers=[{"name": "a b", "file": "f"}]), "header"),
        (told(headers=[{"name": "X", "file": "f", "prefix": "a\r\nb"}]), "prefix"),
        (told(backoffSeconds=[-1]), "seconds"),
        (told(retryAfterErrorSeconds=True), "seconds"),
    ],
)
def test_a_description_without_sense_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(TargetError, match=why):
        read(text)
