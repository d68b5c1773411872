"""The operator's rights against what it does: the API server's audit log, from its start to now.

The test itself brings about what a run does not always need, so that it stands on its own.
"""

import asyncio
import json
import time
from collections.abc import Iterable
from datetime import UTC, datetime

import pytest
import yaml

from clusterkit import kube as k
from clusterkit import manifests, node
from clusterkit.servers import Servers, has_error, status
from devcluster import layout

pytestmark = pytest.mark.serial

Right = tuple[str, str, str]
USER = "system:serviceaccount:mcp-system:mcpserver-operator"
# Needed, though no run shows them: admission asks for the first, the second heals what a watch missed.
UNSEEN: set[Right] = {
    ("mcp-session.dev", "mcpservers/finalizers", "update"),
    ("mcp-session.dev", "mcpservers", "get"),
}


def granted() -> set[Right]:
    """All that the operator's ClusterRole grants."""
    text = node.kubectl("get", "clusterrole", "mcp-system-mcpserver-operator", "--output=yaml").stdout
    return {
        (group, resource, verb)
        for rule in yaml.safe_load(text)["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(lines: Iterable[str], since: str) -> tuple[set[Right], set[Right]]:
    """What the operator did, and what it was forbidden since then (other tests take rights from it).

    To apply what is not there is also to create.
    """
    done: set[Right] = set()
    forbidden: set[Right] = set()
    for line in lines:
        event = json.loads(line)
        target = event.get("objectRef")
        if event["user"]["username"] != USER or target is None or "resource" not in target:
            continue
        resource = "/".join(part for part in (target["resource"], target.get("subresource")) if part)
        right = (target.get("apiGroup", ""), resource, event["verb"])
        denied = event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
        if not denied:
            done.add(right)
        elif event["requestReceivedTimestamp"] >= since:
            forbidden.add(right)
        if event["verb"] == "patch" and event["responseStatus"]["code"] == 201:
            done.add((*right[:2], "create"))
    return done, forbidden


async def test_the_operator_uses_all_its_rights_and_misses_none(servers: Servers, kube: k.Kube) -> None:
    if node.is_kind():
        pytest.skip("the audit log is that of the local node")
    since = datetime.now(UTC).isoformat()
    volume = {"name": "config", "configMap": {"name": "comes-later"}}
    mount = {"name": "config", "mountPath": "/config"}
    waiting = await servers.apply("waiting", volumes=[volume], volumeMounts=[mount])
    await waiting.until(has_error("ConfigMapNotFound"))
    # The node mounts only what a container wants.
    unknown, wanted = {"name": "v", "csi": {"driver": "no.such.driver"}}, {"name": "v", "mountPath": "/v"}
    await servers.apply("unmountable", volumes=[unknown], volumeMounts=[wanted])
    pod = manifests.pod("mcp-taken-1", ["sleep", "600"])
    await kube.apply(k.PODS, servers.namespace, pod)
    taken = await servers.apply("taken")
    await taken.until(has_error("OwnershipConflict"))
    server = await servers.ready("rights")
    await server.patch(env=[{"name": "A", "value": "b"}])
    await server.until(lambda item: status(item, "session", "epoch") == 2, what="second pod")
    await server.ready()
    rights = granted()
    done, forbidden = noted(since)
    deadline = time.monotonic() + 60  # of a pod that is silent the Events are read, after some seconds
    while not rights - done <= UNSEEN and time.monotonic() < deadline:
        await asyncio.sleep(0.5)
        done, forbidden = noted(since)
    assert forbidden == set()
    assert done - rights == set(), "granted elsewhere"
    assert rights - done <= UNSEEN


def noted(since: str) -> tuple[set[Right], set[Right]]:
    whole, _, _ = layout.of_user().audit_log.read_text(encoding="utf-8").rpartition("\n")
    return used(whole.splitlines(), since)  # without a line that is just being written
