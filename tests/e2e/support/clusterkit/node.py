"""What only the node can do: kill a container's process, name an image, look for processes left behind."""

import functools
import json
import os
import secrets
import shutil
import subprocess
from pathlib import Path

from clusterkit import manifests
from devcluster import gotools, layout

KIND_NODE = "mcpserver-operator-control-plane"


def kubectl_path() -> str:
    """The kubectl that fits the cluster: $KUBECTL, else the project's own build, else the one on PATH."""
    if chosen := os.environ.get("KUBECTL"):
        return chosen
    if is_kind():
        return shutil.which("kubectl") or str(gotools.tool("kubectl", layout.of_user()))
    return str(gotools.tool("kubectl", layout.of_user()))


def kubectl(
    *arguments: str, text_in: str | None = None, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run kubectl against the cluster of $KUBECONFIG."""
    return _run_tool(kubectl_path(), *arguments, text_in=text_in, check=check)


def helm(*arguments: str) -> str:
    """Run helm against the cluster of $KUBECONFIG; what it says."""
    return _run_tool(str(gotools.tool("helm", layout.of_user())), *arguments).stdout


def _run_tool(
    *command: str, text_in: str | None = None, check: bool = True
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, input=text_in, capture_output=True, text=True, check=False, timeout=120)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(command)}: {done.stderr}{done.stdout}")
    return done


def make_namespace(prefix: str, *more: manifests.Json) -> str:
    """A new namespace with limits, and with more objects; its name."""
    name = f"e2e-{prefix}-{secrets.token_hex(3)}"
    limits = manifests.limit_range()
    items = [manifests.namespace(name), limits, *more]
    for item in items[1:]:
        item["metadata"]["namespace"] = name
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    kubectl("apply", "-f", "-", text_in=json.dumps(listed))
    return name


@functools.cache
def is_kind() -> bool:
    """Whether the node is a container of a Docker engine; else it is this machine."""
    if not shutil.which("docker"):
        return False
    probe = ["docker", "inspect", "--type", "container", KIND_NODE]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def run(*command: str, text_in: str = "", fine: tuple[int, ...] = (0,)) -> str:
    """Run a command on the node as root. Raises AssertionError for an exit code that is not `fine`."""
    prefix = ["docker", "exec", "-i", KIND_NODE] if is_kind() else []
    done = subprocess.run(
        [*prefix, *command], input=text_in, capture_output=True, text=True, check=False, timeout=60
    )
    if done.returncode not in fine:
        raise AssertionError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def ctr(*arguments: str) -> str:
    socket = "/run/containerd/containerd.sock" if is_kind() else str(layout.of_user().containerd_socket)
    return run("ctr", "--address", socket, "--namespace", "k8s.io", *arguments)


def kill_container(container_id: str, signal: str = "SIGKILL") -> None:
    """Send a signal to the first process of a container; `container_id` as in a pod's status."""
    ctr("tasks", "kill", "--signal", signal, container_id.rpartition("/")[2])


def tag_image(source: str, target: str) -> None:
    ctr("images", "tag", source, target)


def remove_image(name: str) -> None:
    ctr("images", "rm", name)


def processes(marker: str) -> list[str]:
    """Command lines on the node that contain the marker, which travels by stdin so as not to find itself."""
    # 1: nothing found; 2: a process ended while grep looked
    found = run("sh", "-c", "grep -alsF -f - /proc/[0-9]*/cmdline", text_in=marker, fine=(0, 1, 2))
    lines = []
    for path in found.split():
        if is_kind():
            lines.append(path)
        elif Path(path).exists():
            lines.append(
                f"{path}: {Path(path).read_bytes().replace(bytes(1), b' ').decode(errors='replace')}"
            )
    return lines
