"""A remote server in another namespace: shared, told truthfully, and never a reason to touch the pod."""

from collections.abc import AsyncIterator

import pytest

from clusterkit import kube as k
from clusterkit import manifests, node
from clusterkit.servers import Servers, has_error, in_phase, is_ready, status
from clusterkit.serving import pod_is_ready

TOKEN = "far-token"
PORT = 8000
EVERYWHERE = "0.0.0.0"  # noqa: S104 - of a pod
FAR = {"app": "far"}


def far_pod(name: str) -> k.Json:
    command = ["/opt/mcp1/bin/python", "/servers/remote.py", "--host", EVERYWHERE, "--port", str(PORT)]
    container = {
        "name": "far",
        "image": manifests.test_image(),
        "imagePullPolicy": "IfNotPresent",
        "command": [*command, "--token", TOKEN],
        "securityContext": manifests.RESTRICTED,
        "resources": {
            "limits": {"memory": "256Mi", "cpu": "1"},
            "requests": {"memory": "64Mi", "cpu": "10m"},
        },
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": FAR},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }


def far_service() -> k.Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "far", "labels": FAR},
        "spec": {"selector": FAR, "ports": [{"port": PORT}]},
    }


@pytest.fixture
async def elsewhere(kube: k.Kube) -> AsyncIterator[str]:
    """A namespace with a server and its Service."""
    name = node.make_namespace("far")
    await kube.apply(k.SERVICES, name, far_service())
    await kube.apply(k.PODS, name, far_pod("far-1"))
    await kube.until(k.PODS, name, "far-1", pod_is_ready, within=60, what="Ready")
    yield name
    node.kubectl("delete", "namespace", name, "--wait=false")


def remote(namespace: str) -> k.Json:
    header = {"name": "Authorization", "prefix": "Bearer ", "secretKeyRef": {"name": "far", "key": "token"}}
    return {"url": f"http://far.{namespace}.svc:{PORT}/mcp", "headersFrom": [header]}


def secret(token: str) -> k.Json:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "far"},
        "type": "Opaque",
        "stringData": {"token": token},
    }


async def test_a_remote_server_is_shared_and_outlives_its_restart(servers: Servers, elsewhere: str) -> None:
    kube, namespace = servers.kube, servers.namespace
    await kube.apply(k.SECRETS, namespace, secret(TOKEN))
    server = servers.handle("far")
    await kube.apply(
        k.MCPSERVERS,
        namespace,
        manifests.mcpserver(
            "far",
            image=None,
            command=None,
            resources=None,
            remote=remote(elsewhere),
            network={"egress": "All"},
            recovery={"backoffSeconds": [1]},
        ),
    )
    item = await server.ready(within=60)
    assert [tool["name"] for tool in status(item, "tools")] == ["echo", "whoami", "slow"]
    pod = await server.pod()
    assert [container["name"] for container in pod["spec"]["containers"]] == ["relay"]
    assert TOKEN not in str(pod)
    client = await server.client()
    assert await client.call("echo", text="hello") == "hello"
    first = await client.call("whoami")

    await kube.delete(k.PODS, elsewhere, "far-1", grace=0)
    gone = await server.until(lambda seen: not is_ready(seen), within=30, what="not Ready")
    assert status(gone, "address") is None
    assert status(gone, "error", "reason") in {"RemoteUnreachable", "SessionLost"}
    assert status(gone, "error", "phase") in {"Transport", "Initialize"}
    await kube.apply(k.PODS, elsewhere, far_pod("far-2"))
    item = await server.ready(within=60)
    assert await client.call("whoami") != first
    assert status(item, "recovery", "restarts") == 0
    assert status(item, "session", "podUID") == pod["metadata"]["uid"]
    after = await server.pod()
    assert after["metadata"]["uid"] == pod["metadata"]["uid"]
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0
    await client.close()


async def test_a_wrong_secret_is_told_and_a_right_one_taken_up(servers: Servers, elsewhere: str) -> None:
    kube, namespace = servers.kube, servers.namespace
    await kube.apply(k.SECRETS, namespace, secret("wrong"))
    server = servers.handle("denied")
    spec = {"remote": remote(elsewhere), "network": {"egress": "All"}, "recovery": {"backoffSeconds": [1]}}
    manifest = manifests.mcpserver("denied", image=None, command=None, resources=None, **spec)
    await kube.apply(k.MCPSERVERS, namespace, manifest)
    item = await server.until(has_error("RemoteDenied"), within=60, what="RemoteDenied")
    assert in_phase("Error")(item)
    assert "spec.remote.headersFrom" in status(item, "error", "message")
    assert "wrong" not in str(item)
    await kube.apply(k.SECRETS, namespace, secret(TOKEN))
    await server.ready(within=60)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"image": "x"}, "spec.image"),
        ({"command": ["x"]}, "spec.command"),
        ({"network": {"egress": "None"}}, "spec.network.egress"),
        ({"session": {"mode": "PerClient"}}, "spec.session.mode"),
        ({"remote": {"url": "ftp://x"}}, "spec.remote.url: write http:// or https://"),
        ({"remote": {"url": "x.example/mcp"}}, "spec.remote.url: write http:// or https://"),
        ({"remote": {"url": "https://user:pass@x/"}}, "a credential comes by headersFrom"),
        ({"remote": {"url": "https://x/", "headersFrom": [{"name": "Host"}]}}, "spec.remote.headersFrom"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_contradicts_a_remote_server_is_refused_with_its_field(
    servers: Servers, spec: k.Json, said: str
) -> None:
    fields = {"image": None, "command": None, "resources": None, "remote": {"url": "https://x/mcp"}, **spec}
    manifest = manifests.mcpserver("refused", **fields)
    with pytest.raises(k.ApiError) as refusal:
        await servers.kube.apply(k.MCPSERVERS, servers.namespace, manifest)
    assert said in refusal.value.message
