"""The part of the cluster benchmark that calls servers through their Services, from a pod."""

import json
import secrets
from pathlib import Path
from typing import Any

from clusterkit import kube as k
from clusterkit import manifests
from clusterkit.clients import ended
from clusterkit.servers import Server, container_status

HERE = Path(__file__).resolve().parent
KIT = HERE.parent / "tests" / "e2e" / "support" / "clusterkit"
SCRIPTS = "load-generator"
FILES = {
    "clusterkit/leanmcp.py": KIT / "leanmcp.py",
    "echo.py": HERE / "echo.py",
    "measure.py": HERE / "measure.py",
    "loadgen.py": HERE / "loadgen.py",
}
CONSTANT = "constant"
ROOM = {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}
PORT = 8080

Figures = dict[str, float]


async def prepare(kube: k.Kube, namespace: str) -> None:
    """The load generator's files and the constant reply behind a Service of its own."""
    data = {path.name: path.read_text() for path in FILES.values()}
    scripts = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": SCRIPTS}, "data": data}
    await kube.apply(k.CONFIGMAPS, namespace, scripts)
    command = ["python3", "/servers/constant.py", "--bind", "0.0.0.0", "--port", str(PORT)]  # noqa: S104
    probe = {"tcpSocket": {"port": PORT}, "periodSeconds": 1}
    pod = manifests.pod(CONSTANT, command, resources=ROOM, readinessProbe=probe)
    await kube.apply(k.PODS, namespace, pod)
    await kube.apply(k.SERVICES, namespace, manifests.service(CONSTANT, PORT))
    await kube.until(k.PODS, namespace, CONSTANT, pod_ready, what="Ready pod")


def pod_ready(pod: k.Json | None) -> bool:
    found = ((pod or {}).get("status") or {}).get("conditions") or []
    return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in found)


async def load(kube: k.Kube, namespace: str, url: str, secret: str, options: Any) -> Figures:
    """Latency and calls/s of one endpoint, measured by a pod that lives for this measurement."""
    command = ["python3", "/scripts/loadgen.py", url, "--calls", str(options.calls)]
    command += ["--seconds", str(options.seconds)]
    if secret:
        command += ["--token-file", "/secret/token"]
    name = f"load-{secrets.token_hex(3)}"
    pod = manifests.pod(name, command, secret_name=secret, resources=ROOM)
    items = [{"key": path.rpartition("/")[2], "path": path} for path in FILES]
    pod["spec"]["volumes"].append({"name": "scripts", "configMap": {"name": SCRIPTS, "items": items}})
    pod["spec"]["containers"][0]["volumeMounts"].append({"name": "scripts", "mountPath": "/scripts"})
    await kube.apply(k.PODS, namespace, pod)
    seen = await kube.until(k.PODS, namespace, name, ended, within=120, what="end of the load generator")
    said = await kube.log(namespace, name, "main")
    await kube.delete(k.PODS, namespace, name, grace=0)
    if not seen.object or seen.object["status"]["phase"] != "Succeeded":
        raise RuntimeError(f"the load generator failed: {said}")
    figures: Figures = json.loads(said.splitlines()[-1])
    return figures


async def through_service(server: Server, options: Any) -> Figures:
    secret = (await server.only_child(k.SECRETS))["metadata"]["name"]
    return await load(server.kube, server.namespace, await server.url(), secret, options)


async def constant(kube: k.Kube, namespace: str, options: Any) -> Figures:
    url = f"http://{CONSTANT}.{namespace}.svc:{PORT}/mcp"
    return await load(kube, namespace, url, "", options)


def container_id(pod: k.Json, container: str) -> str:
    return str(container_status(pod, container)["containerID"])
