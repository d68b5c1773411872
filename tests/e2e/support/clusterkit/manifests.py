"""Objects that the tests put into the cluster, as plain dictionaries."""

import os
from typing import Any

Json = dict[str, Any]

API_VERSION = "mcp-session.dev/v1alpha1"
RAW = ("python3", "/servers/raw.py")
BROKEN = ("python3", "/servers/broken.py")
SMALL = {
    "requests": {"cpu": "10m", "memory": "32Mi"},
    "limits": {"cpu": "1", "memory": "128Mi", "ephemeral-storage": "128Mi"},
}
RESTRICTED = {
    "runAsNonRoot": True,
    "runAsUser": 2000,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def test_image() -> str:
    """The image with the fault-producing servers, as the node knows it."""
    return os.environ.get("E2E_IMAGE", "localhost/mcpserver-operator/testserver:dev")


def mcpserver(name: str, command: tuple[str, ...] | None = RAW, **spec: Any) -> Json:
    """An MCPServer in the test image, with small resources; `spec` overrides, None removes a field."""
    fields = {"image": test_image(), "command": command and list(command), "resources": SMALL, **spec}
    return {
        "apiVersion": API_VERSION,
        "kind": "MCPServer",
        "metadata": {"name": name},
        "spec": {key: value for key, value in fields.items() if value is not None},
    }


def namespace(name: str) -> Json:
    """A namespace that admits only pods of the strictest Pod Security level."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted", "mcp-session.dev/e2e": "true"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def limit_range() -> Json:
    """No container of a test may take the machine down."""
    limits = {
        "type": "Container",
        "default": {"memory": "256Mi", "cpu": "1"},
        "defaultRequest": {"memory": "16Mi", "cpu": "10m"},
        "max": {"memory": "1Gi"},
    }
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "tests"},
        "spec": {"limits": [limits]},
    }


def quota() -> Json:
    """What a namespace of a careful cluster may have; everything is counted, so every container says all."""
    hard = {
        "pods": "6",
        "services": "8",
        "persistentvolumeclaims": "4",
        "requests.cpu": "1",
        "requests.memory": "2Gi",
        "requests.ephemeral-storage": "2Gi",
        "limits.cpu": "12",
        "limits.memory": "6Gi",
        "limits.ephemeral-storage": "8Gi",
        "count/mcpservers.mcp-session.dev": "8",
        "count/networkpolicies.networking.k8s.io": "8",
    }
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "all"}, "spec": {"hard": hard}}


def secret(name: str, **values: str) -> Json:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": values}


def pod(name: str, command: list[str], *, secret_name: str = "", image: str = "", **container: Any) -> Json:
    """A pod of the test image that runs one command; `secret_name` is mounted at /secret."""
    mounts = [{"name": "secret", "mountPath": "/secret", "readOnly": True}] if secret_name else []
    volumes = [{"name": "secret", "secret": {"secretName": secret_name}}] if secret_name else []
    main = {
        "name": "main",
        "image": image or test_image(),
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "resources": SMALL,
        "securityContext": RESTRICTED,
        "volumeMounts": mounts,
        **container,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 1,
            "containers": [main],
            "volumes": volumes,
        },
    }


def service(name: str, port: int, listens: int = 0) -> Json:
    """A Service in front of the pod of the same name, which may listen on another port."""
    spec = {"selector": {"app": name}, "ports": [{"port": port, "targetPort": listens or port}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
