"""Hosts that an attacker would like to reach, played by a network namespace on the local node.

Only packets of pods are led there, by a routing rule of its own, so that nothing else of the machine changes
and no packet of an attack leaves it.
"""

import contextlib
import json
import secrets
import subprocess
import sys
from collections.abc import Iterator

from clusterkit import node
from devcluster import network

PORT = 80
PUBLIC = "198.51.100.10"
FORBIDDEN = {
    "the metadata service": "169.254.169.254",
    "another link-local address": "169.254.3.4",
    "a private address": "10.99.99.10",
    "another private address": "172.31.99.10",
    "a home network": "192.168.199.10",
    "a shared address": "100.100.100.200",
}
GATEWAY = "198.51.100.1"
TABLE = "4711"
# Answers every connection with one line; prints one when it listens.
LISTENER = f"""
import socketserver
class Hello(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\nstand-in")
socketserver.ThreadingTCPServer.allow_reuse_address = True
with socketserver.ThreadingTCPServer(("0.0.0.0", {PORT}), Hello) as server:
    print("listens", flush=True)
    server.serve_forever()
"""


def _ip(*words: str) -> None:
    node.run("ip", *words)


@contextlib.contextmanager
def stand_ins() -> Iterator[None]:
    """Let the hosts be there while the block runs. Only on the local node, where this machine is the node."""
    name = f"mcp{secrets.token_hex(3)}"
    outside, inside = f"{name}o", f"{name}i"
    hosts = [PUBLIC, *FORBIDDEN.values()]
    with contextlib.ExitStack() as undo:
        _ip("netns", "add", name)
        undo.callback(_ip, "netns", "delete", name)
        _ip("link", "add", outside, "type", "veth", "peer", "name", inside, "netns", name)
        _ip("address", "add", f"{GATEWAY}/32", "dev", outside)
        _ip("link", "set", outside, "up")
        for link in ("lo", inside):
            _ip("-n", name, "link", "set", link, "up")
        for host in hosts:
            _ip("-n", name, "address", "add", f"{host}/32", "dev", inside)
            _ip("route", "add", host, "dev", outside, "table", TABLE)
        _ip("-n", name, "route", "add", GATEWAY, "dev", inside)
        rule = ("from", network.POD_CIDR, "lookup", TABLE, "priority", TABLE)
        _ip("rule", "add", *rule)
        undo.callback(_ip, "rule", "delete", *rule)
        undo.enter_context(_listening(name))
        yield


@contextlib.contextmanager
def _listening(name: str) -> Iterator[None]:
    command = ["ip", "netns", "exec", name, sys.executable, "-c", LISTENER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "listens\n", json.dumps(command)
            yield
        finally:
            process.terminate()
