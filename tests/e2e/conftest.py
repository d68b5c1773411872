"""Fixtures of the end-to-end tests: a cluster, a namespace a module, handles on servers.

Run by `make e2e`, which passes `--e2e` and KUBECONFIG. Without `--e2e` the tests are skipped, whatever
cluster a KUBECONFIG of the environment may point at.
"""

from collections.abc import AsyncIterator, Iterator

import pytest

from clusterkit import kube as k
from clusterkit import manifests, node
from clusterkit.servers import Servers


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--e2e", action="store_true", help="run the end-to-end tests against $KUBECONFIG")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = [item for item in items if item.path.is_relative_to(__file__.rpartition("/")[0])]
    for item in here:
        item.add_marker(pytest.mark.e2e)
        item.add_marker(pytest.mark.timeout(180))
        if not config.getoption("--e2e", default=False):
            item.add_marker(pytest.mark.skip(reason="needs a cluster: run `make e2e`"))

    # What takes long by its nature begins first, so that no worker is left alone with it at the end.
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_sessionstart(session: pytest.Session) -> None:
    """End at once, with one message, when the tests are asked for and the cluster is missing."""
    if not session.config.getoption("--e2e", default=False) or hasattr(session.config, "workerinput"):
        return
    try:
        path = k.kubeconfig_path()
    except RuntimeError as error:
        pytest.exit(str(error), returncode=2)
    done = node.kubectl("get", "crd", "mcpservers.mcp-session.dev", "-o", "name", check=False)
    if done.returncode:
        pytest.exit(
            f"no cluster with the operator behind {path}: run `make cluster`. {done.stderr}", returncode=2
        )


@pytest.fixture(scope="session")
def cluster() -> str:
    """The path of the kubeconfig in use."""
    return str(k.kubeconfig_path())


@pytest.fixture
async def kube() -> AsyncIterator[k.Kube]:
    async with k.Kube(k.kubeconfig_path()) as client:
        yield client


@pytest.fixture(scope="module")
def namespace(request: pytest.FixtureRequest) -> Iterator[str]:
    """One namespace for the tests of a module (and of one worker)."""
    prefix = request.path.stem.removeprefix("test_").replace("_", "-")
    name = node.make_namespace(prefix)
    yield name
    node.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def namespace_with_quota(request: pytest.FixtureRequest) -> Iterator[str]:
    """As `namespace`, with a quota for everything."""
    prefix = request.path.stem.removeprefix("test_").replace("_", "-")
    name = node.make_namespace(prefix, manifests.quota())
    yield name
    node.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def fresh_namespace() -> Iterator[str]:
    """A namespace of the test's own, which it may delete."""
    name = node.make_namespace("fresh")
    yield name
    node.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


@pytest.fixture
async def servers(kube: k.Kube, namespace: str) -> AsyncIterator[Servers]:
    made = Servers(kube, namespace)
    yield made
    await made.close()
