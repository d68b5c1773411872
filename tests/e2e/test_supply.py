"""What the images say that they hold, read from the very pods that run."""

import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest

import relay_compiler
from clusterkit import kube as k
from clusterkit import node
from clusterkit.haystack import OPERATOR_NAMESPACE
from clusterkit.servers import Servers

ROOT = Path(__file__).resolve().parents[2]


def within(namespace: str, pod: str, container: str, *command: str) -> str:
    """What a command in a running container prints."""
    where = ("exec", pod, f"--namespace={namespace}", f"--container={container}", "--")
    return str(node.kubectl(*where, *command).stdout)


def installed(namespace: str, pod: str, container: str) -> set[str]:
    """The packages of the distribution that a running container has."""
    shown = within(namespace, pod, container, "dpkg-query", "--show", "--showformat=${Package}\n")
    return {quote(name) for name in shown.split()}


def told(namespace: str, pod: str, container: str, image: str) -> dict[str, str]:
    """Version by package URL without version, of the bill of materials in a running container."""
    document = json.loads(within(namespace, pod, container, "cat", f"/usr/share/sbom/{image}.cdx.json"))
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    found = [item for item in document["components"] if "purl" in item]
    return {item["purl"].rpartition("@")[0]: item["version"] for item in found}


def locked(lock: str) -> dict[str, str]:
    text = (ROOT / f"requirements/{lock}.txt").read_text(encoding="utf-8")
    found = re.findall(r"^([\w.-]+)==([^ ;\\]+)", text, re.MULTILINE)
    return {f"pkg:pypi/{name.lower().replace('_', '-')}": version for name, version in found}


@pytest.mark.parametrize("image", ["relay", "operator", "runtime"])
async def test_an_image_holds_the_locked_packages_and_says_so(
    servers: Servers, kube: k.Kube, image: str
) -> None:
    if image == "operator":
        [pod] = await kube.list(k.PODS, OPERATOR_NAMESPACE)
        where = (OPERATOR_NAMESPACE, pod["metadata"]["name"], "operator")
    else:
        # The image of the test servers is made of the runtime's.
        server = await servers.ready(f"of-{image}")
        container = "server" if image == "runtime" else "relay"
        where = (servers.namespace, (await server.pod())["metadata"]["name"], container)
    found = told(*where, image)
    python = {name: version for name, version in found.items() if name.startswith("pkg:pypi/")}
    wanted = locked("sidecar" if image == "relay" else image)
    if image == "relay":  # its compiled modules hold the runtime of what compiled them
        assert "pkg:pypi/mypy" in python
        wanted["pkg:pypi/mypy"] = locked("compiler")["pkg:pypi/mypy"]
    assert python
    assert {name: wanted.get(name) for name in python} == python
    of_debian = {name.rpartition("/")[2] for name in found if name.startswith("pkg:deb/")}
    assert of_debian == installed(*where)
    assert ("pkg:golang/stdlib" in found) is (image == "relay")


async def test_a_pod_runs_the_compiled_relay(servers: Servers) -> None:
    server = await servers.ready("compiled")
    pod = (await server.pod())["metadata"]["name"]
    # Asked of the library itself, since a source beside it would be taken without a word.
    names = relay_compiler.NAMES
    code = f"import importlib; print(*(importlib.import_module(n).__file__ for n in {names!r}), sep='\\n')"
    files = within(servers.namespace, pod, "relay", "/opt/venv/bin/python", "-c", code).split()
    assert len(files) == len(names)
    assert [file for file in files if not file.endswith(".so")] == []
