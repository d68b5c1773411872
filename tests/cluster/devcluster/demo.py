"""The demonstration: two public MCP servers, and one tool call of each from a pod and from here."""

import base64
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from devcluster import images, say, shell
from devcluster.cluster import Cluster
from devcluster.layout import REPOSITORY

NAMESPACE = "default"
READY_SECONDS = 300  # the first start fetches the servers' packages
CLIENT = "tests/e2e/servers/library_client.py"
CLIENT_IN_IMAGE = ("/opt/client/bin/python", "/servers/library_client.py")
CLIENT_POD = "demo-client"


@dataclass(frozen=True)
class Call:
    """One tool call of one example."""

    server: str
    tool: str
    arguments: str

    @property
    def example(self) -> Path:
        """The manifest that a user would apply."""
        return REPOSITORY / "examples" / f"{self.server}.yaml"


CALLS = (
    Call("time", "get_current_time", '{"timezone": "Europe/Berlin"}'),
    Call("everything", "echo", '{"message": "hello through the relay"}'),
)


def run(cluster: Cluster) -> None:
    """Apply the examples, wait until they are Ready, show them, call them."""
    with say.step("applying " + " and ".join(f"examples/{call.example.name}" for call in CALLS)):
        _kubectl(cluster, "apply", *(f"--filename={call.example}" for call in CALLS))
    with say.step("waiting until both are Ready"):
        resources = [f"mcpserver/{call.server}" for call in CALLS]
        _kubectl(cluster, "wait", "--for=condition=Ready", *resources, f"--timeout={READY_SECONDS}s")
    say.line(_kubectl(cluster, "get", "mcpservers").rstrip())
    for call in CALLS:
        url = _kubectl(cluster, "get", "mcpserver", call.server, "--output=jsonpath={.status.address.url}")
        with say.step(f"{call.tool} of {call.server}, from a pod through {url}"):
            answer = _from_pod(cluster, call, url)
        _show(answer)
        with say.step(f"{call.tool} of {call.server}, from here by port-forward"):
            answer = _from_here(cluster, call, url)
        _show(answer)


def _kubectl(cluster: Cluster, *words: str, text_in: str | None = None) -> str:
    return cluster.kubectl(f"--namespace={NAMESPACE}", *words, text_in=text_in)


def _show(answer: str) -> None:
    found = json.loads(answer)
    text = " ".join(" ".join(part.split()) for part in found["text"] if part)
    say.line(f"    {len(found['tools'])} tools; answer: {text}")
    if found["isError"]:
        raise say.ClusterError("the server answered the call with an error")


def service_name(url: str) -> str:
    """The Service behind a URL of a status; its Secret has the same name."""
    return (urlsplit(url).hostname or "").partition(".")[0]


def client_pod(call: Call, url: str) -> dict[str, object]:
    """A pod that makes the call once, under the strictest pod security level."""
    options = [url, "--token-file=/secret/token", f"--call={call.tool}", f"--arguments={call.arguments}"]
    container = {
        "name": "client",
        "image": next(image.alias for image in images.IMAGES if image.name == "testserver"),
        "imagePullPolicy": "IfNotPresent",
        "command": [*CLIENT_IN_IMAGE, *options],
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "secret", "mountPath": "/secret", "readOnly": True}],
    }
    items = [{"key": "token", "path": "token"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": CLIENT_POD},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 2000,
                "fsGroup": 2000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [{"name": "secret", "secret": {"secretName": service_name(url), "items": items}}],
        },
    }


def _from_pod(cluster: Cluster, call: Call, url: str) -> str:
    _kubectl(cluster, "delete", "pod", CLIENT_POD, "--ignore-not-found", "--now")
    _kubectl(cluster, "create", "--filename=-", text_in=json.dumps(client_pod(call, url)))
    try:
        done = "--for=jsonpath={.status.containerStatuses[0].state.terminated}"
        _kubectl(cluster, "wait", done, f"pod/{CLIENT_POD}", "--timeout=60s")
        return _kubectl(cluster, "logs", CLIENT_POD).strip().splitlines()[-1]
    finally:
        _kubectl(cluster, "delete", "pod", CLIENT_POD, "--now")


def _from_here(cluster: Cluster, call: Call, url: str) -> str:
    service = service_name(url)
    secret = _kubectl(cluster, "get", "secret", service, "--output=jsonpath={.data.token}")
    with tempfile.NamedTemporaryFile() as token, _forwarded(cluster, service) as port:
        Path(token.name).write_bytes(base64.b64decode(secret))
        options = [f"--token-file={token.name}", f"--call={call.tool}", f"--arguments={call.arguments}"]
        return shell.run([sys.executable, REPOSITORY / CLIENT, f"http://127.0.0.1:{port}/mcp", *options])


@contextmanager
def _forwarded(cluster: Cluster, service: str) -> Iterator[int]:
    """A port of this host that leads to the Service as long as the block runs."""
    words = cluster.kubectl_words(f"--namespace={NAMESPACE}", "port-forward", f"service/{service}", ":80")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as forward:
        try:
            line = forward.stdout.readline() if forward.stdout else ""
            found = re.search(r"127\.0\.0\.1:(\d+)", line)
            if not found:
                forward.terminate()
                raise say.ClusterError(
                    f"port-forward: {line}{forward.stderr.read() if forward.stderr else ''}"
                )
            yield int(found[1])
        finally:
            forward.terminate()
