"""What a server's pod may not do, seen from the pod's spec and from inside the process."""

import json
from collections.abc import AsyncIterator

import pytest

from clusterkit import kube as k
from clusterkit import manifests
from clusterkit.servers import Server, Servers, standing


@pytest.fixture
async def writer(kube: k.Kube, namespace: str) -> AsyncIterator[Server]:
    """One server for all tests of this module; the end of the namespace ends it."""
    async with standing(kube, namespace, "writer") as server:
        yield server


def containers(pod: k.Json) -> list[k.Json]:
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


async def test_every_container_has_requests_and_limits(servers: Servers) -> None:
    server = await servers.ready("limited", resources=None)
    for container in containers(await server.pod()):
        resources = container["resources"]
        assert set(resources["requests"]) >= {"cpu", "memory", "ephemeral-storage"}, container["name"]
        assert set(resources["limits"]) >= {"memory", "ephemeral-storage"}, container["name"]


async def test_the_pod_is_restricted_and_has_no_token(servers: Servers) -> None:
    server = await servers.ready("restricted")
    pod = await server.pod()
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert pod["spec"]["enableServiceLinks"] is False
    assert pod["spec"]["restartPolicy"] == "Never"
    for container in containers(pod):
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] is True
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"]["drop"] == ["ALL"]
    sources = [s for volume in pod["spec"]["volumes"] for s in volume.get("projected", {}).get("sources", [])]
    assert [source for source in sources if "serviceAccountToken" in source] == []


async def test_the_process_runs_without_root_without_capabilities_and_without_the_relays_files(
    servers: Servers,
) -> None:
    server = await servers.ready("humble")
    client = await server.client()
    seen = json.loads(await client.call("identity"))
    assert seen["uid"] == 2000
    assert seen["gid"] == 3000
    assert int(seen["capabilities"], 16) == 0
    assert seen["noNewPrivileges"] == "1"
    assert seen["seccomp"] == "2"
    assert seen["serviceAccountToken"] is False
    assert "/secrets" not in seen["mounts"]
    assert "/state" not in seen["mounts"]


@pytest.mark.parametrize(
    "directory", ["~", "/tmp/", "$TMPDIR", "$XDG_CACHE_HOME", "$npm_config_cache", "$UV_CACHE_DIR"]
)
async def test_home_temporary_and_cache_folders_are_writable(writer: Server, directory: str) -> None:
    client = await writer.client()
    if directory.startswith("$"):
        assert directory[1:] in json.loads(await client.call("environment"))
    await client.call("write", directory=directory)
    await client.close()


@pytest.mark.parametrize("directory", ["/", "/usr", "/servers", "/var/tmp", "/run"])
async def test_everything_else_is_read_only(writer: Server, directory: str) -> None:
    client = await writer.client()
    with pytest.raises(AssertionError, match=r"Read-only|Permission denied"):
        await client.call("write", directory=directory)
    await client.close()


async def test_the_environment_has_nothing_of_the_relay(writer: Server) -> None:
    client = await writer.client()
    names = json.loads(await client.call("environment"))
    assert [name for name in names if name.startswith("MCP_")] == []
    await client.close()


async def test_a_namespace_with_quota_and_restricted_admission_takes_the_pod(
    kube: k.Kube, fresh_namespace: str
) -> None:
    hard = {"requests.cpu": "1", "requests.memory": "1Gi", "limits.cpu": "4", "limits.memory": "2Gi"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}
    await kube.apply(k.QUOTAS, fresh_namespace, quota)
    await kube.delete(k.LIMITRANGES, fresh_namespace, "tests")
    servers = Servers(kube, fresh_namespace)
    await servers.ready("within-quota", manifests.RAW)
    await servers.close()
