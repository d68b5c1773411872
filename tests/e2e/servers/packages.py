"""A private package registry with a server for npx and one for uvx, over TLS, for who has the credential.

`packages.py --port PORT --folder FOLDER`: FOLDER has tls.crt, tls.key and password. PyPI's simple API is at
/simple/ for the user `reader` with that password, npm's at /npm/ with the password as bearer token. The
packages are the same bytes whenever they are packed: the index has their digest, and clients keep the index.
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import ssl
import tarfile
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

WHEEL = "team_server-1.0.0-py3-none-any.whl"
TARBALL = "server-1.0.0.tgz"
PYTHON_SERVER = """
import json, sys

def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer(message)}), flush=True)

def answer(message):
    if message["method"] == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "team", "version": "1.0.0"}}
    if message["method"] == "tools/list":
        return {"tools": [{"name": "origin", "inputSchema": {"type": "object"}}]}
    return {"content": [{"type": "text", "text": "from the private PyPI"}]}
"""
NODE_SERVER = """#!/usr/bin/env node
const info = { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "team", version: "1.0.0" } };
const answers = {
  initialize: info,
  "tools/list": { tools: [{ name: "origin", inputSchema: { type: "object" } }] },
  "tools/call": { content: [{ type: "text", text: "from the private npm" }] },
};
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method] ?? {} }));
});
"""  # noqa: E501 - JavaScript


def wheel() -> bytes:
    """The package for uvx."""
    info = "team_server-1.0.0.dist-info"
    files = {
        "team_server.py": PYTHON_SERVER,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: team-server\nVersion: 1.0.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\nteam-server = team_server:main\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return packed.getvalue()


def tarball() -> bytes:
    """The package for npx."""
    manifest = {"name": "@team/server", "version": "1.0.0", "bin": {"server": "server.js"}}
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as unpacked,
        tarfile.open(fileobj=unpacked, mode="w") as archive,
    ):
        for name, text in {"package.json": json.dumps(manifest), "server.js": NODE_SERVER}.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mode = len(text.encode()), 0o755
            archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


def pages(host: str) -> dict[str, tuple[str, bytes]]:
    """Content type and content by path."""
    packed_wheel, packed_tarball = wheel(), tarball()
    digest = hashlib.sha256(packed_wheel).hexdigest()
    link = f'<a href="../{WHEEL}#sha256={digest}">{WHEEL}</a>'
    integrity = base64.b64encode(hashlib.sha512(packed_tarball).digest()).decode()
    dist = {"tarball": f"https://{host}/npm/@team/server/-/{TARBALL}", "integrity": f"sha512-{integrity}"}
    version = {"name": "@team/server", "version": "1.0.0", "bin": {"server": "server.js"}, "dist": dist}
    packument = {"name": "@team/server", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    return {
        "/simple/team-server/": ("text/html", f"<!doctype html><body>{link}</body>".encode()),
        f"/simple/{WHEEL}": ("application/octet-stream", packed_wheel),
        "/npm/@team/server": ("application/json", json.dumps(packument).encode()),
        f"/npm/@team/server/-/{TARBALL}": ("application/octet-stream", packed_tarball),
    }


class Handler(BaseHTTPRequestHandler):
    """Answers who has the credential."""

    protocol_version = "HTTP/1.1"
    password = ""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.replace("%2f", "/").replace("%2F", "/").partition("?")[0]
        basic = base64.b64encode(f"reader:{self.password}".encode()).decode()
        wanted = f"Bearer {self.password}" if path.startswith("/npm/") else f"Basic {basic}"
        found = pages(self.headers["Host"]).get(path)
        if self.headers.get("Authorization") != wanted:
            self._send(401, "text/plain", b"who are you?")
        elif found is None:
            self._send(404, "text/plain", b"no such package")
        else:
            self._send(200, *found)

    def _send(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="packages"')
        if status == 200:
            self.send_header("Cache-Control", "max-age=600")  # as PyPI says of its index
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    Handler.password = (options.folder / "password").read_text(encoding="utf-8").strip()
    server = ThreadingHTTPServer(("", options.port), Handler)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(options.folder / "tls.crt", options.folder / "tls.key")
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()


if __name__ == "__main__":
    main()
