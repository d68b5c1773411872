"""What an image starts is read from a real registry."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from devcluster import certificates
from mcp_operator.adapters.errors import RegistryError
from mcp_operator.adapters.registry import MAX_REDIRECTS, Registries
from mcp_operator.core.oci import reference
from mcp_operator.core.oci.credentials import Credentials
from mcp_operator.core.oci.image import EntryPoint
from registrykit import server
from registrykit.images import Shelf

# The first time the registry is fetched.
pytestmark = pytest.mark.timeout(600)

SERVER = EntryPoint(("python", "-m", "server"), ("--fast",))
CONFIG = {"Entrypoint": ["python", "-m", "server"], "Cmd": ["--fast"], "User": "1000"}
# "let me in", as `htpasswd -B` writes it
USERS = "reader:$2b$04$abcdefghijklmnopqrstuuTnc8amReAFiMHxaSoW9U22KarbWnkSm\n"


async def found(host: str, name: str, *credentials: Credentials) -> EntryPoint:
    registries = Registries(insecure=[host])
    try:
        return await registries.entry_point(reference.parse(f"{host}/{name}"), credentials)
    finally:
        await registries.close()


@pytest.fixture
def host(tmp_path: Path, unused_tcp_port: int) -> Iterator[str]:
    with server.running(tmp_path, unused_tcp_port) as address:
        yield address


async def test_the_entry_point_of_an_image_is_found_by_tag_and_by_digest(host: str) -> None:
    digest = Shelf(f"http://{host}/v2/team/server").image("1.0", CONFIG)
    assert await found(host, "team/server:1.0") == SERVER
    assert await found(host, f"team/server@{digest}") == SERVER


async def test_of_an_index_the_variant_of_this_architecture_is_taken_or_any_for_linux(host: str) -> None:
    shelf = Shelf(f"http://{host}/v2/team/server")
    other = shelf.image("other", {"Cmd": ["other"]}, "riscv64")
    shelf.index(
        "both", {"riscv64": other, "amd64": shelf.image("a", CONFIG), "arm64": shelf.image("b", CONFIG)}
    )
    shelf.index("only", {"riscv64": other})
    assert await found(host, "team/server:both") == SERVER
    assert await found(host, "team/server:only") == EntryPoint((), ("other",))


async def test_an_image_that_is_not_there_is_told_apart_from_a_registry_that_is_not_there(host: str) -> None:
    with pytest.raises(RegistryError, match="does not have the image") as missing:
        await found(host, "team/absent:1.0")
    assert (missing.value.denied, missing.value.passing) == (True, False)
    with pytest.raises(RegistryError, match="does not answer") as away:
        await found("127.0.0.1:1", "team/server:1.0")
    assert (away.value.denied, away.value.passing) == (False, True)


async def test_a_registry_without_tls_is_not_spoken_to_unless_it_is_named(host: str) -> None:
    registries = Registries()
    with pytest.raises(RegistryError, match="does not answer"):
        await registries.entry_point(reference.parse(f"{host}/team/server"), ())
    await registries.close()


async def test_a_token_is_fetched_with_the_credentials_that_fit(tmp_path: Path, unused_tcp_port: int) -> None:
    right, wrong = Credentials("reader", "let me in"), Credentials("reader", "wrong")
    tokens = server.Tokens(right.basic)
    # The registry believes every token; who gets one is decided by the token service.
    auth = {"silly": {"realm": tokens.url, "service": "shelf"}}
    with server.running(tmp_path, unused_tcp_port, auth) as host:
        Shelf(f"http://{host}/v2/team/server", {"Authorization": "Bearer good"}).image("1.0", CONFIG)
        assert await found(host, "team/server:1.0", wrong, right) == SERVER
        assert tokens.asked[0]["service"] == ["shelf"]
        assert tokens.asked[0]["scope"] == ["repository:team/server:pull"]
        for given in ((wrong,), ()):
            with pytest.raises(RegistryError, match="refuses access") as refused:
                await found(host, "team/server:1.0", *given)
            assert refused.value.denied
    tokens.close()


async def test_basic_authentication_is_answered(tmp_path: Path, unused_tcp_port: int) -> None:
    right = Credentials("reader", "let me in")
    (tmp_path / "users").write_text(USERS, encoding="utf-8")
    auth = {"htpasswd": {"realm": "shelf", "path": str(tmp_path / "users")}}
    with server.running(tmp_path, unused_tcp_port, auth) as host:
        Shelf(f"http://{host}/v2/team/server", {"Authorization": right.basic}).image("1.0", CONFIG)
        assert await found(host, "team/server:1.0", right) == SERVER
        with pytest.raises(RegistryError, match="wants credentials"):
            await found(host, "team/server:1.0")


@pytest.fixture
def identity(tmp_path: Path) -> server.Identity:
    """A registry's certificate, signed by an authority of the tests' own."""
    certificates.make_authority(tmp_path)
    certificates.issue(tmp_path, certificates.Identity("shelf", "shelf", names=("IP:127.0.0.1",)))
    return server.Identity(tmp_path / "shelf.crt", tmp_path / "shelf.key", tmp_path / "ca.crt")


async def test_a_registry_over_tls_is_believed_when_its_authority_is_named(
    tmp_path: Path, unused_tcp_port: int, identity: server.Identity
) -> None:
    right = Credentials("reader", "let me in")
    (tmp_path / "users").write_text(USERS, encoding="utf-8")
    auth = {"htpasswd": {"realm": "shelf", "path": str(tmp_path / "users")}}
    with server.running(tmp_path, unused_tcp_port, auth, tls=identity) as host:
        believed = ssl.create_default_context(cafile=identity.authority)
        shelf = Shelf(f"https://{host}/v2/team/server", {"Authorization": right.basic}, believed)
        shelf.index("1.0", {"amd64": shelf.image("a", CONFIG), "arm64": shelf.image("b", CONFIG, "arm64")})
        image = reference.parse(f"{host}/team/server:1.0")
        knowing, unknowing = Registries(ca_file=str(identity.authority)), Registries()
        assert await knowing.entry_point(image, [right]) == SERVER
        with pytest.raises(RegistryError, match=r"does not answer: its certificate is not accepted$"):
            await unknowing.entry_point(image, [right])
        await knowing.close()
        await unknowing.close()


@contextmanager
def elsewhere(target: str, asked: list[str | None]) -> Iterator[str]:
    """A host that sends everybody to the target, or round in a circle; `asked` has the Authorization sent."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.headers.get("Authorization"))
            self.send_response(307)
            self.send_header("Location", target + self.path if target else self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, daemon=True)
        thread.start()
        yield f"127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()
        thread.join()


async def test_a_redirect_is_followed_but_the_credentials_stay_behind() -> None:
    asked: list[str | None] = []
    told: list[str | None] = []

    class Wary(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.append(self.headers.get("Authorization"))
            known = self.headers.get("Authorization") is not None
            self.send_response(307 if known else 401)
            self.send_header("WWW-Authenticate", 'Basic realm="shelf"')
            self.send_header("Location", f"http://{away}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with elsewhere("", asked) as away, ThreadingHTTPServer(("127.0.0.1", 0), Wary) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, daemon=True)
        thread.start()
        with pytest.raises(RegistryError, match="does not answer"):
            await found(
                f"127.0.0.1:{httpd.server_address[1]}", "team/server:1.0", Credentials("reader", "let me in")
            )
        httpd.shutdown()
        thread.join()
    basic = Credentials("reader", "let me in").basic
    assert told == [None, basic]
    assert set(asked) == {None}
    assert len(asked) == MAX_REDIRECTS


async def test_an_image_behind_a_redirect_is_found(host: str) -> None:
    Shelf(f"http://{host}/v2/team/server").image("1.0", CONFIG)
    asked: list[str | None] = []
    with elsewhere(f"http://{host}", asked) as front:
        assert await found(front, "team/server:1.0") == SERVER
    assert len(asked) == 2
