"""Where npx and uvx get servers from: private registries, a cache that stays, slow first starts."""

import json
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml

from clusterkit import disks, manifests, node
from clusterkit import kube as k
from clusterkit.servers import Server, Servers, condition, in_phase, ready_since_epoch, status
from clusterkit.serving import serving
from devcluster import certificates

EXAMPLES = Path(__file__).parents[2] / "examples"
HOST, PASSWORD = "packages", "a credential"
PLACE, CREDENTIAL = "packages.example.com", "change-me"  # as the examples have them
CLAIMS = k.Kind("v1", "persistentvolumeclaims")
CACHING = (("private/npm.yaml", "npm"), ("private/uv.yaml", "PyPI"))
CASES = (*CACHING, ("private/pip.yaml", "PyPI"))
# None of the tools has to find out by trying again.
NO_RETRIES = [
    {"name": name, "value": "0"} for name in ("npm_config_fetch_retries", "UV_HTTP_RETRIES", "PIP_RETRIES")
]
RESOURCES = manifests.SMALL | {"limits": {"cpu": "1", "memory": "256Mi", "ephemeral-storage": "256Mi"}}


@pytest.fixture(scope="module")
def namespace(namespace_with_quota: str) -> str:
    """The strictest namespace."""
    return namespace_with_quota


def make_authority(folder: Path) -> str:
    """The certificate of a new authority, which has signed for the registry's name."""
    certificates.make_authority(folder)
    certificates.issue(folder, certificates.Identity("packages", HOST, names=(f"DNS:{HOST}",)))
    return (folder / "ca.crt").read_text()


@pytest.fixture
async def registry(servers: Servers, tmp_path: Path) -> AsyncIterator[str]:
    """A private registry in the namespace; gives the certificate of its authority."""
    authority = make_authority(tmp_path)
    chain, key = ((tmp_path / f"packages.{end}").read_text() for end in ("crt", "key"))
    # Of a Secret under an earlier one's name the node may still hold the content.
    name = f"packages-{secrets.token_hex(3)}"
    secret = manifests.secret(name, **{"tls.crt": chain, "tls.key": key, "password": PASSWORD})
    command = ["python3", "/servers/packages.py", "--port", "8443", "--folder", "/secret"]
    await servers.kube.apply(k.SECRETS, servers.namespace, secret)
    where = (servers.kube, servers.namespace, HOST)
    async with serving(*where, command, listens=8443, port=443, secret_name=name):
        yield authority


async def applied(servers: Servers, path: str, authority: str, password: str, **spec: k.Json) -> Server:
    """The example as it stands, but for name, credential, certificate of the authority, and retries."""
    text = (EXAMPLES / path).read_text()
    assert PLACE in text
    assert CREDENTIAL in text
    text = text.replace(f":{CREDENTIAL}@", f":{quote(password)}@")
    text = text.replace(PLACE, HOST).replace(CREDENTIAL, password)
    for item in yaml.safe_load_all(text):
        if "ca.crt" in item.get("data", {}):
            item["data"]["ca.crt"] = authority
        if item["kind"] == "MCPServer":
            item["spec"]["env"] += NO_RETRIES
            # It is in the cluster, where servers reach nothing by default.
            item["spec"] |= {"network": {"egress": "All"}, "resources": RESOURCES, **spec}
        kind = k.Kind(item["apiVersion"], f"{item['kind'].lower()}s")
        await servers.kube.apply(kind, servers.namespace, item)
    return servers.handle(Path(path).stem)


@pytest.mark.parametrize(("path", "origin"), CASES)
async def test_a_server_comes_from_a_private_registry_with_a_credential_and_an_authority_of_its_own(
    servers: Servers, registry: str, path: str, origin: str
) -> None:
    # A user that the image does not know, as some platforms give each namespace one of its own.
    user = {"runAsUser": 1_000_650_000}
    server = await applied(servers, path, registry, PASSWORD, securityContext=user)
    item = await server.ready(within=90)
    assert status(item, "recovery", "restarts") == 0
    client = await server.client()
    assert await client.call("origin") == f"from the private {origin}"


@pytest.mark.parametrize(("path", "origin"), CASES)
async def test_a_private_registry_that_refuses_the_credential_is_told(
    servers: Servers, registry: str, path: str, origin: str
) -> None:
    wrong = "a wrong one"
    server = await applied(servers, path, registry, wrong, recovery={"maxRetries": 0})
    item = await server.failed(within=90)
    error = status(item, "error")
    assert error["reason"] == "ProcessExited"
    assert "401" in error["stderrTail"]
    assert not [form for form in (wrong, quote(wrong)) if form in json.dumps(item["status"])], origin


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("private/npm.yaml", "unable to verify the first certificate"),
        ("private/uv.yaml", "invalid peer certificate"),
        ("private/pip.yaml", "certificate verify failed"),
    ],
)
async def test_a_private_registry_whose_authority_is_not_the_one_that_was_given_is_told(
    servers: Servers, registry: str, tmp_path: Path, path: str, words: str
) -> None:
    other = make_authority(tmp_path / "other")
    assert other != registry
    server = await applied(servers, path, other, PASSWORD, recovery={"maxRetries": 0})
    item = await server.failed(within=90)
    assert words in status(item, "error", "stderrTail")
    assert PASSWORD not in json.dumps(item["status"])


@pytest.mark.parametrize(("path", "origin"), CACHING)
async def test_with_a_cache_the_next_start_needs_no_registry(
    servers: Servers, registry: str, path: str, origin: str
) -> None:
    claim = f"downloads-{origin.lower()}"
    with disks.disk(servers.namespace, claim):
        await servers.kube.apply(CLAIMS, servers.namespace, disks.claim(claim))
        server = await applied(servers, path, registry, PASSWORD, cache={"claimName": claim})
        # The pods of an earlier server of this name count, while one of them is still there.
        epoch = status(await server.ready(within=90), "session", "epoch")
        await servers.kube.delete(k.PODS, servers.namespace, HOST, grace=0)
        pod = (await server.pod())["metadata"]["name"]
        await servers.kube.delete(k.PODS, servers.namespace, pod)
        await server.until(ready_since_epoch(epoch + 1), within=60, what="a start from the cache")
        client = await server.client()
        assert await client.call("origin") == f"from the private {origin}"
        await servers.kube.delete(CLAIMS, servers.namespace, claim)


async def test_a_slow_first_start_is_connecting_and_shows_what_it_writes_to_stderr(servers: Servers) -> None:
    script = "echo 'Downloading numpy (15.8MiB)' >&2; until [ -e /tmp/go ]; do sleep 0.2; done; exec "
    command = ("sh", "-c", script + " ".join(manifests.RAW))
    server = await servers.apply("slow-start", command)
    said = "it says: Downloading numpy (15.8MiB)"

    def told(item: k.Json | None) -> bool:
        return said in condition(item, "Ready").get("message", "")

    item = await server.until(told, what="the words of a slow start")
    assert in_phase("Connecting")(item)
    assert condition(item, "Ready")["status"] == "False"
    assert status(item, "recovery", "consecutiveFailures") == 0
    (pod,) = await server.children(k.PODS)
    where = ("-n", servers.namespace, pod["metadata"]["name"], "-c", "server")
    node.kubectl("exec", *where, "--", "touch", "/tmp/go")
    item = await server.ready()
    assert said not in condition(item, "Ready")["message"]
    assert status(item, "recovery", "restarts") == 0
