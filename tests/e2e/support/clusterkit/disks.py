"""Volumes for claims: the local node has nothing that makes them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from clusterkit import node

SIZE = "512Mi"


@contextmanager
def disk(namespace: str, claim: str) -> Iterator[None]:
    """A volume for this very claim, which nobody else's claim takes; its content goes with it."""
    name = f"{namespace}-{claim}"
    folder = f"/tmp/mcp-e2e-{name}"  # noqa: S108 - removed with the volume
    node.run("mkdir", "-p", "-m", "0777", folder)
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": SIZE},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "claimRef": {"namespace": namespace, "name": claim},
            "hostPath": {"path": folder},
        },
    }
    node.kubectl("apply", "-f", "-", text_in=json.dumps(volume))
    try:
        yield
    finally:
        node.kubectl("delete", "persistentvolume", name, "--wait=false")
        node.run("rm", "-rf", folder)


def claim(name: str) -> dict[str, object]:
    """A claim that only a volume made for it satisfies."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "",
        "resources": {"requests": {"storage": SIZE}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}
