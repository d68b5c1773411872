"""An image alone is enough: its registry tells what it starts."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterkit import kube as k
from clusterkit import manifests, release, shelves
from clusterkit.servers import Servers, has_error, status
from devcluster import certificates, network
from registrykit import server

USER, PASSWORD = "reader", "let me in"
# The same, as `htpasswd -B` writes it
USERS = "reader:$2b$04$abcdefghijklmnopqrstuuTnc8amReAFiMHxaSoW9U22KarbWnkSm\n"
BASIC = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


@pytest.fixture
def guarded_image(tmp_path: Path) -> Iterator[str]:
    """An image that the node has, in a registry that only tells who knows the password."""
    (tmp_path / "users").write_text(USERS, encoding="utf-8")
    auth = {"htpasswd": {"realm": "shelf", "path": str(tmp_path / "users")}}
    config = {"Entrypoint": ["python3"], "Cmd": ["/servers/raw.py"]}
    with shelves.image(tmp_path, config, auth, BASIC) as name:
        yield name


@pytest.mark.serial
async def test_an_image_without_a_command_runs_what_its_registry_tells(
    servers: Servers, guarded_image: str
) -> None:
    made = await servers.apply("no-command", (), image=guarded_image)
    item = await made.until(has_error("EntryPointUnknown"), what="a refusal of the registry")
    error = status(item, "error")
    assert error["phase"] == "ImagePull"
    assert "spec.imagePullSecrets" in error["message"]
    assert "spec.command" in error["message"]
    assert status(item, "recovery", "consecutiveFailures") == 0

    host = guarded_image.partition("/")[0]
    login = json.dumps({"auths": {host: {"username": USER, "password": PASSWORD}}})
    pull = manifests.secret("pull", **{".dockerconfigjson": login})
    await servers.kube.apply(k.SECRETS, servers.namespace, pull)
    await made.patch(imagePullSecrets=[{"name": "pull"}])
    item = await made.ready()
    assert status(item, "recovery", "restarts") == 0
    pod = await made.pod()
    (container,) = (c for c in pod["spec"]["containers"] if c["name"] == "server")
    assert container["command"][-2:] == ["python3", "/servers/raw.py"]
    client = await made.client()
    assert await client.call("echo", text="from the image") == "from the image"


@pytest.mark.serial
async def test_a_registry_is_believed_whose_authority_the_chart_is_given(
    kube: k.Kube, servers: Servers, tmp_path: Path
) -> None:
    certificates.make_authority(tmp_path)
    certificates.issue(tmp_path, certificates.Identity("shelf", "shelf", names=(f"IP:{network.NODE_IP}",)))
    identity = server.Identity(tmp_path / "shelf.crt", tmp_path / "shelf.key", tmp_path / "ca.crt")
    _, where = await release.named(kube)
    authority = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "e2e-authority"},
        "data": {"ca.crt": identity.authority.read_text()},
    }
    config = {"Entrypoint": ["python3", "/servers/raw.py"]}
    with shelves.image(tmp_path, config, tls=identity) as image:
        made = await servers.apply("own-authority", (), image=image)
        item = await made.until(has_error("EntryPointUnknown"), what="a certificate that nobody believes")
        assert "its certificate is not accepted" in status(item, "error", "message")
        await kube.apply(k.CONFIGMAPS, where, authority)
        async with release.upgraded(kube, registries__caBundle__configMap="e2e-authority"):
            item = await made.ready(within=60)
        assert status(item, "recovery", "restarts") == 0
    await kube.delete(k.CONFIGMAPS, where, "e2e-authority")
