"""The registry as a process, and a token service that gives tokens to who knows the password."""

import json
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx

from registrykit import program

START_SECONDS = 20.0


class Identity(NamedTuple):
    """What the registry shows of itself over TLS, as files."""

    certificate: Path
    key: Path
    authority: Path


@contextmanager
def running(
    folder: Path,
    port: int,
    auth: dict[str, Any] | None = None,
    address: str = "127.0.0.1",
    tls: Identity | None = None,
) -> Iterator[str]:
    """A registry on a port of this machine, over TLS if it has an identity; gives its host with port."""
    shown = {"tls": {"certificate": str(tls.certificate), "key": str(tls.key)}} if tls else {}
    settings = {
        "version": "0.1",
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "http": {"addr": f"{address}:{port}", **shown},
        # What is put there has no layers, and indexes name manifests of one architecture only.
        "validation": {"disabled": True},
        **({"auth": auth} if auth else {}),
    }
    (folder / "config.yml").write_text(json.dumps(settings), encoding="utf-8")
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [program.path(), "serve", folder / "config.yml"], stdout=log, stderr=subprocess.STDOUT
        )
    try:
        believed = ssl.create_default_context(cafile=tls.authority) if tls else False
        _wait(f"http{'s' if tls else ''}://{address}:{port}/v2/", believed, process, folder / "log")
        yield f"{address}:{port}"
    finally:
        process.terminate()
        process.wait(10)


def _wait(url: str, believed: ssl.SSLContext | bool, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            httpx.get(url, verify=believed)
        except httpx.TransportError:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the registry does not start: {log.read_text()}") from None
            time.sleep(0.05)
        else:
            return


class Tokens:
    """A token service: `asked` has the queries of who got one."""

    def __init__(self, basic: str) -> None:
        self.asked: list[dict[str, list[str]]] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.headers.get("Authorization") != basic:
                    self.send_error(401)
                    return
                service.asked.append(parse_qs(urlsplit(self.path).query))
                body = json.dumps({"token": "good"}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Its realm."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/token"

    def close(self) -> None:
        """Stop it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
