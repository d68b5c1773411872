"""The servers under test, and what the node knows of their processes."""

import asyncio
import contextlib
import json
import secrets
import shutil
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from chaoskit.facts import STABLE_SECONDS, Facts, age, of_status
from chaoskit.truth import Span
from clusterkit import kube as k
from clusterkit import manifests, node
from clusterkit.leanmcp import Endpoint
from clusterkit.servers import SERVER_LABEL, Server, container_status
from devcluster import processes

Json = dict[str, Any]
SDK = "/servers/sdk.py"
COMMANDS = {
    "raw": ("python3", "/servers/raw.py"),
    "sdk1": ("/opt/mcp1/bin/python", SDK),
    "sdk2": ("/opt/client/bin/python", SDK),
}
OPERATOR = "app.kubernetes.io/name=mcpserver-operator,app.kubernetes.io/component=operator"
MEMORY = {
    "requests": {"cpu": "10m", "memory": "48Mi"},
    "limits": {"cpu": "1", "memory": "192Mi", "ephemeral-storage": "128Mi"},
}
VOLUMES = [
    {"name": "journal", "persistentVolumeClaim": {"claimName": "journal"}},
    {"name": "scratch", "emptyDir": {"sizeLimit": "8Mi"}},
]
MOUNTS = [{"name": "journal", "mountPath": "/journal"}, {"name": "scratch", "mountPath": "/scratch"}]
VOLUME_KIND = k.Kind("v1", "persistentvolumes")
CLAIM_KIND = k.Kind("v1", "persistentvolumeclaims")


NOWHERE = Endpoint("", 0, "")


@dataclass
class Target:
    """One server: its handle, its own name of the image, where the node keeps its journal."""

    name: str
    server: Server
    image: str
    journal: Path
    endpoint: Endpoint = NOWHERE
    token: str = ""
    applied: float = 0.0
    start_seconds: float = 0.0
    """From the apply to Ready, while the other servers of the run started as well."""
    secret_value: str = "first"


@dataclass
class World:
    """All targets, and the times that the suite took something away on purpose."""

    kube: k.Kube
    namespace: str
    folder: Path
    outage: float
    targets: dict[str, Target] = field(default_factory=dict)
    blind: list[Span] = field(default_factory=list)
    dark: list[Span] = field(default_factory=list)

    @property
    def selector(self) -> str:
        """Selects the pods of all servers."""
        return SERVER_LABEL

    async def facts(self, target: Target) -> Facts:
        """What is known of a server now."""
        item = await target.server.get()
        pod = await self.newest_pod(target) or {"metadata": {}, "status": {}}
        relay = container_status(pod, "relay")
        return Facts(
            **of_status(item),
            pod_uid=pod["metadata"].get("uid", ""),
            process=await asyncio.to_thread(process_of, pod),
            relay_restarts=relay.get("restartCount", 0),
            session_seconds=age(item, datetime.now(UTC)),
        )

    async def newest_pod(self, target: Target) -> Json | None:
        """The pod with the highest epoch."""
        pods = await self.kube.list(k.PODS, self.namespace, f"{SERVER_LABEL}={target.name}")
        return max(pods, key=epoch_of, default=None)


def epoch_of(pod: Json) -> int:
    """The number at the end of the pod's name."""
    return int(pod["metadata"]["name"].rpartition("-")[2])


def pid_of(pod: Json, container: str) -> int:
    """The node's pid of a container's first process; 0 when it does not run."""
    wanted = container_status(pod, container).get("containerID", "").rpartition("/")[2]
    for line in node.ctr("tasks", "list").splitlines()[1:]:
        task, pid, state = line.split()[:3]
        if wanted and task == wanted and state == "RUNNING":
            return int(pid)
    return 0


def child_of(pid: int) -> int:
    """The first child of a process; 0 when it has none."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(found[0]) if found else 0
    return 0


def process_of(pod: Json) -> tuple[int, int]:
    """Pid and start time of the server process, which is the launcher's child."""
    launcher = pid_of(pod, "server")
    pid = child_of(launcher) if launcher else 0
    record = processes.observe(pid) if pid else None
    return (pid, record.started) if record else (0, 0)


async def make(kube: k.Kube, namespace: str, names: list[str], outage: float) -> World:
    """Apply the servers and wait until all are Ready."""
    folder = Path("/var/tmp") / f"mcp-chaos-{namespace}"  # noqa: S108 - made here, for the pods of any user
    folder.mkdir()
    folder.chmod(0o1777)
    world = World(kube, namespace, folder, outage)
    await _journal_volume(world)
    for name in names:
        await apply(world, name)
    await asyncio.gather(*(await_ready(target) for target in world.targets.values()))
    return world


async def await_ready(target: Target) -> None:
    """Wait until it is Ready, and learn how to reach it."""
    await target.server.ready(within=90)
    target.start_seconds = time.monotonic() - target.applied
    target.endpoint = await target.server.endpoint()
    target.token = await target.server.token()


async def _journal_volume(world: World) -> None:
    """A volume that outlives the pods."""
    size = {"storage": "1Gi"}
    common: Json = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": world.namespace},
        "spec": {
            **common,
            "capacity": size,
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": str(world.folder)},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "journal"},
        "spec": {**common, "resources": {"requests": size}, "volumeName": world.namespace},
    }
    await world.kube.apply(VOLUME_KIND, "", volume)
    await world.kube.apply(CLAIM_KIND, world.namespace, claim)


async def apply(world: World, name: str, options: tuple[str, ...] = ()) -> Target:
    """Apply one server, with an image name and a Secret of its own; `options` go to its command."""
    image = f"localhost/mcpserver-operator/testserver:chaos-{name}-{secrets.token_hex(3)}"
    await asyncio.to_thread(node.tag_image, manifests.test_image(), image)
    target = Target(name, Server(world.kube, world.namespace, name), image, world.folder / name)
    target.applied = time.monotonic()
    world.targets[name] = target
    await world.kube.apply(k.SECRETS, world.namespace, manifests.secret(secret_of(target), value="first"))
    variable = {"secretKeyRef": {"name": secret_of(target), "key": "value"}}
    await target.server.apply(
        (*COMMANDS[name], *options),
        image=image,
        resources=MEMORY,
        volumes=VOLUMES,
        volumeMounts=MOUNTS,
        recovery={"stableSeconds": STABLE_SECONDS},
        env=[{"name": "JOURNAL", "value": f"/journal/{name}"}, {"name": "VALUE", "valueFrom": variable}],
    )
    return target


def secret_of(target: Target) -> str:
    """The name of the Secret that a server's environment comes from."""
    return f"{target.name}-value"


async def drop(world: World, target: Target) -> None:
    """Remove one server."""
    del world.targets[target.name]
    await target.server.delete()
    await world.kube.gone(k.MCPSERVERS, world.namespace, target.name, within=60)
    for pod in await world.kube.list(k.PODS, world.namespace, f"{SERVER_LABEL}={target.name}"):
        await world.kube.gone(k.PODS, world.namespace, pod["metadata"]["name"], within=60)
    await asyncio.to_thread(node.remove_image, target.image)


async def remove(world: World) -> None:
    """Remove what was made; the namespace is the caller's."""
    for target in list(world.targets.values()):
        await drop(world, target)
    await world.kube.delete(CLAIM_KIND, world.namespace, "journal")
    await world.kube.delete(VOLUME_KIND, "", world.namespace)
    shutil.rmtree(world.folder, ignore_errors=True)


def resident_mib(pid: int) -> float:
    """Resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


async def operator_pods(kube: k.Kube) -> list[Json]:
    """The operator's pods that are not on their way out."""
    pods = await kube.list(k.PODS, "", OPERATOR)
    return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]


async def operator_back(kube: k.Kube, but: str, within: float) -> float:
    """When an operator is ready whose container is not `but`; monotonic seconds."""
    async with asyncio.timeout(within):
        while True:
            with contextlib.suppress(k.ApiError, OSError, ConnectionError, json.JSONDecodeError):
                for pod in await operator_pods(kube):
                    for status in pod["status"].get("containerStatuses", []):
                        if status["ready"] and status["containerID"] != but:
                            return time.monotonic()
            await asyncio.sleep(0.1)
