import pytest

from mcp_sidecar.core import access


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("application/json, text/event-stream", {"application/json", "text/event-stream"}),
        ("application/json;q=0.9,text/event-stream;q=0", {"application/json"}),
        ("*/*", {"application/json", "text/event-stream"}),
        ("TEXT/*", {"text/event-stream"}),
        ("application/*", {"application/json"}),
        ("text/html, image/png", set()),
        ("", set()),
    ],
)
def test_accept_says_which_kinds_of_reply_a_client_takes(header: str, accepted: set[str]) -> None:
    assert access.accepted(header.encode()) == accepted
    assert access.accepted(None) == set()


@pytest.mark.parametrize(
    ("header", "ok"),
    [
        (b"Bearer t0ken", True),
        (b"bearer  t0ken", True),
        (b"Bearer t0ken2", False),
        (b"Bearer", False),
        (b"Basic t0ken", False),
        (b"t0ken", False),
        (None, False),
    ],
)
def test_only_the_right_token_in_the_right_scheme_is_good(header: bytes | None, ok: bool) -> None:
    assert access.bearer_ok(header, b"t0ken") is ok


@pytest.mark.parametrize(
    ("host", "ok"),
    [
        (b"demo.ns.svc", True),
        (b"DEMO.ns.svc.:8080", True),
        (b"exact.example:8443", True),
        (b"exact.example", False),
        (b"a.wild.example:1", True),
        (b"wild.example", False),
        (b"127.0.0.1:3", True),
        (b"[::1]:3", True),
        (b"[::2]:3", False),
        (b"", False),
        (None, False),
        (b"demo.ns.svc@evil.example", False),
    ],
)
def test_hosts_are_allowed_by_name_by_authority_and_by_suffix(host: bytes | None, ok: bool) -> None:
    rules = access.HostRules(["demo.ns.svc", "exact.example:8443", "*.Wild.example", " "])
    assert (rules.refusal(host, None) is None) is ok


@pytest.mark.parametrize(
    ("origin", "ok"),
    [
        (b"https://demo.ns.svc", True),
        (b"http://localhost:5000", True),
        (b"null", False),
        (b"https://evil.example", False),
        (b"file://demo.ns.svc", False),
        (b"https://", False),
        (b"http://[::1", False),
    ],
)
def test_origins_are_allowed_by_their_host(origin: bytes, ok: bool) -> None:
    refusal = access.HostRules(["demo.ns.svc"]).refusal(b"localhost", origin)
    assert (refusal is None) is ok
    assert ok or origin.decode() in str(refusal)


@pytest.mark.parametrize(
    ("resolver", "names"),
    [
        ("search ns.svc.corp.example svc.corp.example corp.example node.example\nnameserver 10.0.0.1\n",
         ("a", "d.ns.svc.corp.example", "d.ns.svc.cluster.local")),
        ("search old.example\nsearch svc.CORP.example. svc.two.example\n",
         ("a", "d.ns.svc.corp.example", "d.ns.svc.two.example", "d.ns.svc.cluster.local")),
        ("search ns.svc.cluster.local svc.cluster.local cluster.local\n", ("a", "d.ns.svc.cluster.local")),
        ("search\n# none\n", ("a", "d.ns.svc.cluster.local")),
        ("", ("a", "d.ns.svc.cluster.local")),
    ],
)  # fmt: skip
def test_a_services_name_is_allowed_under_the_clusters_own_domain_only(
    resolver: str, names: tuple[str, ...]
) -> None:
    allowed = access.in_cluster(["a", "d.ns.svc.*"], resolver)
    assert allowed == names
    rules = access.HostRules(allowed)
    for name in names:
        assert rules.refusal(f"{name}:8080".encode(), f"http://{name}".encode()) is None
    # What an attacker's domain could be made to look like.
    assert rules.refusal(b"d.ns.svc.evil.example", None)
    assert rules.refusal(b"a", b"http://d.ns.svc.cluster.local.evil.example")


def test_a_refused_host_hears_of_a_cure_that_exists() -> None:
    rules = access.HostRules(["demo"])
    for refusal in (rules.refusal(b"elsewhere", None), rules.refusal(b"demo", b"http://elsewhere")):
        assert refusal is not None
        assert "'http://elsewhere'" in refusal or "'elsewhere'" in refusal
        assert "spec.session.allowedHosts" in refusal
        assert "--allowed-host" in refusal


def test_a_star_allows_every_name() -> None:
    assert access.HostRules(["*"]).refusal(b"anything", b"https://anywhere.example") is None


@pytest.mark.parametrize(
    ("kind", "ok"),
    [
        (b"application/json", True),
        (b"Application/JSON ; charset=utf-8", True),
        (b"text/json", False),
        (None, False),
    ],
)
def test_a_body_must_say_that_it_is_json(kind: bytes | None, ok: bool) -> None:
    assert access.is_json(kind) is ok
