"""Images: what goes into them, what their names say, and what of this machine they may know."""

import re
import shutil
from pathlib import Path

import pytest

from devcluster import baseimage, gotools, hostconfig, images, install, say
from devcluster.layout import REPOSITORY

COPY = re.compile(r"^COPY (?!--from)(?P<sources>.+) \S+$", re.MULTILINE)


def _sources(image: images.Image) -> list[str]:
    text = (REPOSITORY / image.dockerfile).read_text(encoding="utf-8")
    return [source.rstrip("/") for match in COPY.finditer(text) for source in match["sources"].split()]


@pytest.mark.parametrize("image", images.IMAGES, ids=lambda image: image.name)
def test_whatever_a_dockerfile_copies_counts_as_an_input(image: images.Image) -> None:
    sources = _sources(image)
    assert sources
    for source in sources:
        assert any(source == given or source.startswith(f"{given}/") for given in image.inputs), source


@pytest.mark.parametrize("image", images.IMAGES, ids=lambda image: image.name)
def test_the_build_context_lets_every_input_through(image: images.Image) -> None:
    lines = (REPOSITORY / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = [line[1:] for line in lines if line.startswith("!")]
    assert "*" in lines
    for given in image.inputs:
        assert any(Path(given).match(pattern) for pattern in allowed), given


@pytest.mark.parametrize(
    "image", [image for image in images.IMAGES if not image.base], ids=lambda image: image.name
)
def test_product_images_name_a_public_base_and_a_numeric_user(image: images.Image) -> None:
    text = (REPOSITORY / image.dockerfile).read_text(encoding="utf-8")
    assert "ARG BASE_IMAGE=python:3.13-slim\n" in text
    assert re.findall(r"^USER (.+)$", text, re.MULTILINE)[-1] in {"1000:1000", "2000:2000"}


def test_the_relay_image_carries_no_models_of_the_contract() -> None:
    relay = next(image for image in images.IMAGES if image.name == "relay")
    contract = [source for source in _sources(relay) if "mcp_relay_api" in source]
    assert contract == ["sidecar/mcp_relay_api/__init__.py", "sidecar/mcp_relay_api/paths.py"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "package/inner").mkdir(parents=True)
    (tmp_path / "package/inner/module.py").write_text("a = 1\n", encoding="utf-8")
    (tmp_path / "lock.txt").write_text("x==1\n", encoding="utf-8")
    return tmp_path


def test_an_image_is_named_by_the_content_of_its_inputs(tree: Path) -> None:
    inputs = ("package", "lock.txt")
    before = images.digest(tree, inputs)
    elsewhere = tree.with_name("elsewhere")
    shutil.copytree(tree, elsewhere)
    assert images.digest(elsewhere, inputs) == before
    assert images.digest(tree, inputs, "another base") != before
    (tree / "package/inner/__pycache__").mkdir()
    (tree / "package/inner/__pycache__/module.pyc").write_bytes(b"cache")
    assert images.digest(tree, inputs) == before
    (tree / "package/inner/module.py").rename(tree / "package/inner/other.py")
    assert images.digest(tree, inputs) != before


def test_only_older_builds_of_the_same_images_are_forgotten() -> None:
    current = "localhost/mcpserver-operator/relay:dev-new"
    present = [
        "localhost/mcpserver-operator/relay:dev",
        "localhost/mcpserver-operator/relay:dev-old",
        current,
        "localhost/mcpserver-operator/operator:dev-old",
        "localhost/absent-1:1",
        "sha256:abc",
    ]
    assert images.replaced(present, [current]) == ["localhost/mcpserver-operator/relay:dev-old"]


def test_the_chart_gets_the_tags_that_were_built() -> None:
    references = {image.name: f"{image.repository}:dev-{image.name}" for image in images.IMAGES}
    assert install.settings(references) == {
        "imageRegistry": "localhost",
        "image.tag": "dev-operator",
        "relay.image.tag": "dev-relay",
        "runtime.image.tag": "dev-runtime",
        "registries.insecure[0]": "10.200.0.1:5055",
    }


def test_images_trust_whom_the_host_trusts_and_see_none_of_its_folders() -> None:
    environment = hostconfig.environment(
        {
            "PIP_FIND_LINKS": "/srv/wheels",
            "PIP_INDEX_URL": "https://mirror.example/simple",
            "SSL_CERT_FILE": "/home/u/own.pem",
            "NPM_CONFIG_REGISTRY": "",
        }
    )
    assert environment["PIP_INDEX_URL"] == "https://mirror.example/simple"
    assert environment["SSL_CERT_FILE"] == environment["NODE_EXTRA_CA_CERTS"] == hostconfig.BUNDLE
    assert not environment.keys() & {"PIP_FIND_LINKS", "NPM_CONFIG_REGISTRY"}


def test_of_pip_only_the_indexes_are_taken_over() -> None:
    listing = "global.cert='/x.pem'\nglobal.find-links='/w'\nglobal.index-url='https://m.example/?a=b'\n"
    assert hostconfig.pip_conf(listing) == "[global]\nindex-url = https://m.example/?a=b\n"


def test_of_npm_only_the_registries_are_taken_over_and_never_a_token() -> None:
    system = "registry=https://one.example/\nprefix=/usr\ncafile=/x.pem\n"
    user = "# mine\nregistry = https://two.example/\n@own:registry=https://own.example/\n//own.example/:_authToken=s\n"
    assert hostconfig.npmrc(system, user) == (
        "registry=https://two.example/\n@own:registry=https://own.example/\n"
    )


def test_credentials_in_the_address_of_an_index_stay_on_the_host() -> None:
    address, bare = "https://me:secret@m.example/simple", "https://m.example/simple"
    assert hostconfig.environment({"PIP_EXTRA_INDEX_URL": f"{address} {address}"})["PIP_EXTRA_INDEX_URL"] == (
        f"{bare} {bare}"
    )
    assert hostconfig.pip_conf(f"global.index-url='{address}'\n") == f"[global]\nindex-url = {bare}\n"
    assert hostconfig.npmrc(f"registry={address}") == f"registry={bare}\n"


def _target(origin: str, codename: str, component: str = "main", created_by: str = "Packages") -> str:
    return f"{origin}|http://mirror.example/{codename}/|{component}|{codename}|{created_by}"


@pytest.mark.parametrize(
    ("lines", "chosen"),
    [
        ([_target("Debian", "bookworm")], ("trixie", "http://mirror.example/bookworm/")),
        ([_target("Ubuntu", "noble")], ("noble", "http://mirror.example/noble/")),
        (
            [
                _target("Debian", "bookworm-security"),
                _target("Debian", "bookworm", "contrib"),
                _target("Debian", "bookworm", created_by="DEP-11"),
                _target("Debian", "bookworm"),
            ],
            ("trixie", "http://mirror.example/bookworm/"),
        ),
    ],
    ids=["Debian", "Ubuntu", "main archive only"],
)
def test_the_base_image_comes_from_the_mirror_that_the_host_uses(
    lines: list[str], chosen: tuple[str, str]
) -> None:
    assert baseimage.choose_mirror("\n".join(lines)) == chosen


def test_without_a_mirror_the_error_names_the_cure() -> None:
    with pytest.raises(say.ClusterError, match="apt-get update"):
        baseimage.choose_mirror("")


def test_the_base_image_has_the_files_and_variables_of_the_host_configuration() -> None:
    text = baseimage.render(hostconfig.HostConfig({"A": 'x "y"', "B": "z"}, {"/etc/pip.conf": "[global]\n"}))
    assert "COPY files/etc/pip.conf /etc/pip.conf\n" in text
    assert 'ENV A="x \\"y\\"" \\\n    B="z"\n' in text


def test_a_build_of_the_node_is_named_by_its_sources(tmp_path: Path) -> None:
    for name in ("main.go", "go.mod", "go.sum"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    before = gotools.node_key(tmp_path)
    (tmp_path / "README").write_text("not a source", encoding="utf-8")
    assert gotools.node_key(tmp_path) == before
    (tmp_path / "go.sum").write_text("moved on", encoding="utf-8")
    assert gotools.node_key(tmp_path) != before


def test_the_node_is_built_from_the_kubernetes_that_its_name_says() -> None:
    text = (gotools.NODE_MODULE / "go.mod").read_text(encoding="utf-8")
    assert f"k8s.io/kubernetes {gotools.KUBERNETES}\n" in text
