"""An image alone is enough: its registry tells what it starts."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterkit import kube as k
from clusterkit import manifests, node
from clusterkit.servers import Servers, has_error, status
from devcluster import network
from registrykit import server
from registrykit.images import Shelf

USER, PASSWORD = "reader", "let me in"
# The same, as `htpasswd -B` writes it
USERS = "reader:$2b$04$abcdefghijklmnopqrstuuTnc8amReAFiMHxaSoW9U22KarbWnkSm\n"
BASIC = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


@pytest.fixture
def guarded_image(tmp_path: Path) -> Iterator[str]:
    """An image that the node has, in a registry that only tells who knows the password."""
    if node.is_kind():
        pytest.skip("the registry is a process of the node, which a kind node cannot reach under one name")
    address, _, port = network.REGISTRY.partition(":")
    (tmp_path / "users").write_text(USERS, encoding="utf-8")
    auth = {"htpasswd": {"realm": "shelf", "path": str(tmp_path / "users")}}
    with server.running(tmp_path, int(port), auth, address) as host:
        shelf = Shelf(f"http://{host}/v2/team/raw", {"Authorization": BASIC})
        shelf.image("1", {"Entrypoint": ["python3"], "Cmd": ["/servers/raw.py"]})
        name = f"{host}/team/raw:1"
        node.tag_image(manifests.test_image(), name)
        yield name
        node.remove_image(name)


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
