"""What a token issuer publishes is read from a real one, over TLS, and nothing else is."""

import datetime as dt
import ipaddress
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mcp_operator.adapters.errors import IssuerError
from mcp_operator.adapters.issuers import MAX_DOCUMENT, Issuers

PAGES = {
    "/keys": (200, json.dumps({"keys": []}).encode()),
    "/text": (200, b"no JSON"),
    "/list": (200, b"[]"),
    "/deep": (200, b"[" * 100_000),
    "/large": (200, b'{"a":"' + b"x" * MAX_DOCUMENT + b'"}'),
    "/moved": (302, b""),
    "/broken": (500, b"secret of the house"),
}
RAW = {
    "/status": b"SSH-2.0-secret\r\n\r\n",
    "/header": b"HTTP/1.1 200 OK\r\nsecret\r\n\r\n",
    "/chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nsecret\r\n",
    "/short": b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nsecret",
    "/nothing": b"",
}


def certificate(folder: Path) -> Path:
    """A certificate for 127.0.0.1 that signs itself, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "issuer")])
    now = dt.datetime.now(dt.UTC)
    day = dt.timedelta(days=1)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder(
            name, name, key.public_key(), x509.random_serial_number(), now - day, now + day
        )
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    form = serialization.Encoding.PEM
    private = key.private_bytes(form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / "issuer.pem"
    file.write_bytes(made.public_bytes(form) + private)
    return file


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path in RAW:
            self.wfile.write(RAW[self.path])
            self.close_connection = True
            return
        status, body = PAGES.get(self.path, (404, b"{}"))
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/keys")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Clients that go early, or do not believe the certificate, are what is tested."""


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """URL and certificate of an issuer."""
    file = certificate(tmp_path_factory.mktemp("issuer"))
    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}", str(file)
    server.shutdown()
    server.server_close()
    thread.join()


async def test_a_document_is_read_by_tls_with_a_trusted_certificate(issuer: tuple[str, str]) -> None:
    url, ca = issuer
    issuers = Issuers(ca)
    assert await issuers.document(f"{url}/keys") == {"keys": []}
    await issuers.close()


@pytest.mark.parametrize(
    ("path", "words", "absent"),
    [
        ("/text", "no JSON", False),
        ("/list", "no object", False),
        ("/deep", "no JSON", False),
        ("/large", "more than 524288 bytes", False),
        ("/moved", "HTTP 302", False),
        ("/broken", "HTTP 500$", False),
        ("/absent", "HTTP 404", True),
    ],
)
async def test_what_is_no_document_is_told_without_what_is_there(
    issuer: tuple[str, str], path: str, words: str, absent: bool
) -> None:
    url, ca = issuer
    issuers = Issuers(ca)
    with pytest.raises(IssuerError, match=words) as caught:
        await issuers.document(url + path)
    assert caught.value.absent is absent
    assert "secret" not in str(caught.value)
    await issuers.close()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/status", "what it sends is no HTTP"),
        ("/header", "what it sends is no HTTP"),
        ("/chunk", "what it sends is no HTTP"),
        ("/short", "what it sends is no HTTP"),
        ("/nothing", "it ends the connection"),
    ],
)
async def test_why_there_is_no_answer_is_told_without_a_word_of_the_other_side(
    issuer: tuple[str, str], path: str, words: str
) -> None:
    url, ca = issuer
    issuers = Issuers(ca)
    with pytest.raises(IssuerError) as caught:
        await issuers.document(url + path)
    assert str(caught.value) == f"it does not answer: {words}"
    await issuers.close()


async def test_an_issuer_that_is_too_slow_is_told_so(
    issuer: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_operator.adapters.issuers.FETCH_SECONDS", 0)
    url, ca = issuer
    issuers = Issuers(ca)
    with pytest.raises(IssuerError, match=r"^it does not answer: it is too slow$"):
        await issuers.document(f"{url}/keys")
    await issuers.close()


async def test_neither_plain_http_nor_an_unknown_certificate_is_believed(issuer: tuple[str, str]) -> None:
    issuers = Issuers()
    with pytest.raises(IssuerError, match=r"^it does not answer: its certificate is not accepted$"):
        await issuers.document(f"{issuer[0]}/keys")
    with pytest.raises(IssuerError, match="not https"):
        await issuers.document(issuer[0].replace("https", "http"))
    with pytest.raises(IssuerError, match=r"^it does not answer: no connection$"):
        await issuers.document("https://127.0.0.1:1/keys")
    await issuers.close()
