"""A small web server: GET gives a page, POST a picture's address as a service that draws charts would.

`web.py --port PORT`, all addresses.
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = b"<!doctype html><title>Page</title><h1>A page of the cluster</h1><p>It has a paragraph of text.</p>"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._send(PAGE, "text/html; charset=utf-8", 404 if self.path == "/robots.txt" else 200)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        answer = {"success": True, "resultObj": "http://web/chart.png"}
        self._send(json.dumps(answer).encode(), "application/json", 200)

    def _send(self, body: bytes, content_type: str, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    ThreadingHTTPServer(("", parser.parse_args().port), Handler).serve_forever()


if __name__ == "__main__":
    main()
