"""Names, credentials and documents of images, as registries and container runtimes understand them."""

import base64
import json
from typing import Any

import pytest

from mcp_operator.core.oci import challenge, credentials, image, reference
from mcp_operator.core.oci.challenge import Challenge
from mcp_operator.core.oci.credentials import Credentials
from mcp_operator.core.oci.image import DocumentError, EntryPoint
from mcp_operator.core.oci.reference import ImageNameError, Reference

DIGEST = "sha256:" + "a" * 64
LINUX = {"os": "linux"}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("python", Reference("docker.io", "library/python", "latest")),
        ("python:3.13-slim", Reference("docker.io", "library/python", "3.13-slim")),
        ("mcp/time", Reference("docker.io", "mcp/time", "latest")),
        ("docker.io/mcp/time:1", Reference("docker.io", "mcp/time", "1")),
        ("index.docker.io/mcp/time:1", Reference("docker.io", "mcp/time", "1")),
        ("ghcr.io/org/team/server:v1", Reference("ghcr.io", "org/team/server", "v1")),
        ("localhost/server:dev", Reference("localhost", "server", "dev")),
        ("localhost:5000/server", Reference("localhost:5000", "server", "latest")),
        ("[fd00::1]:5000/server", Reference("[fd00::1]:5000", "server", "latest")),
        ("registry.example.com:5000/a_b/c--d:1", Reference("registry.example.com:5000", "a_b/c--d", "1")),
        (f"ghcr.io/org/server@{DIGEST}", Reference("ghcr.io", "org/server", DIGEST)),
        (f"ghcr.io/org/server:v1@{DIGEST}", Reference("ghcr.io", "org/server", DIGEST)),
    ],
)
def test_a_name_means_what_it_means_to_a_container_runtime(text: str, meant: Reference) -> None:
    assert reference.parse(text) == meant
    assert meant.pinned == (DIGEST in text)


@pytest.mark.parametrize(
    "text",
    [
        "", "Python", "a//b", "ghcr.io/", "ghcr.io/a:", "ghcr.io/a@", "ghcr.io/a@sha256:1", "a b", "a:b:c",
        "ghcr.io/../a", "http://ghcr.io/a", "-a.com/b", "a.com:port/b", "a" * 3 + ":" + "t" * 129,
    ],
)  # fmt: skip
def test_a_text_that_names_no_image_is_refused(text: str) -> None:
    with pytest.raises(ImageNameError, match="is not the name of an image"):
        reference.parse(text)


def _secret(**auths: dict[str, str]) -> dict[str, bytes]:
    return {".dockerconfigjson": json.dumps({"auths": auths}).encode()}


def _auth(user: str) -> dict[str, str]:
    return {"auth": base64.b64encode(f"{user}:p:w".encode()).decode()}


@pytest.mark.parametrize(
    ("name", "picture", "fits"),
    [
        ("ghcr.io", "ghcr.io/org/a", True),
        ("https://ghcr.io", "ghcr.io/org/a", True),
        ("https://ghcr.io/v2/", "ghcr.io/v2/a", True),
        ("ghcr.io/org", "ghcr.io/org/a", True),
        ("ghcr.io/or", "ghcr.io/org/a", False),
        ("ghcr.io/org/a", "ghcr.io/org/a", True),
        ("ghcr.io", "ghcr.io:5000/org/a", False),
        ("*.example.com", "eu.example.com/a", True),
        ("*.example.com", "example.com/a", False),
        ("*.example.com", "x.eu.example.com/a", False),
        ("*", "ghcr.io/a", False),
        ("https://index.docker.io/v1/", "python", True),
        ("docker.io", "mcp/time", True),
        ("https://index.docker.io/v1/", "ghcr.io/mcp/time", False),
    ],
)
def test_credentials_are_only_for_the_registry_and_path_that_they_name(
    name: str, picture: str, fits: bool
) -> None:
    found = credentials.find([_secret(**{name: _auth("u")})], reference.parse(picture))
    assert found == ((Credentials("u", "p:w"),) if fits else ())


def test_the_most_special_credentials_come_first_and_each_once() -> None:
    both = _secret(**{"ghcr.io": _auth("all"), "ghcr.io/org": _auth("org"), "ghcr.io/org/a": _auth("all")})
    old = {".dockercfg": json.dumps({"ghcr.io": {"username": "old", "password": "s"}}).encode()}
    found = credentials.find([old, both], reference.parse("ghcr.io/org/a"))
    assert [item.user for item in found] == ["all", "org", "old"]


@pytest.mark.parametrize(
    "data",
    [
        {}, {".dockerconfigjson": b"no json"}, {".dockerconfigjson": b"[]"},
        {".dockerconfigjson": b'{"auths": []}'}, _secret(**{"ghcr.io": {"auth": "%%"}}),
        _secret(**{"ghcr.io": {"auth": base64.b64encode(b"nocolon").decode()}}), {"token": b"x"},
    ],
)  # fmt: skip
def test_a_secret_without_usable_credentials_gives_none(data: dict[str, bytes]) -> None:
    assert credentials.find([data], reference.parse("ghcr.io/a")) == ()


def test_a_password_is_not_printed() -> None:
    assert "secret" not in repr(Credentials("u", "secret"))


@pytest.mark.parametrize(
    ("header", "meant"),
    [
        (
            'Bearer realm="https://auth.example.com/token",service="r.example.com",scope="repository:a:pull,push"',
            Challenge(
                "bearer",
                {
                    "realm": "https://auth.example.com/token",
                    "service": "r.example.com",
                    "scope": "repository:a:pull,push",
                },
            ),
        ),
        ('basic Realm = "a \\"b\\""', Challenge("basic", {"realm": 'a "b"'})),
        ("Bearer realm=plain", Challenge("bearer", {"realm": "plain"})),
        ("Negotiate", Challenge("negotiate")),
    ],
)
def test_a_challenge_is_read(header: str, meant: Challenge) -> None:
    assert challenge.parse([header]) == (meant,)


@pytest.mark.parametrize(
    ("entrypoint", "cmd", "args", "before"),
    [
        (("a",), ("b",), (), ("a", "b")),
        (("a",), ("b",), ("c",), ("a",)),
        (("a",), (), (), ("a",)),
        ((), ("b",), (), ("b",)),
        ((), ("b",), ("c",), ()),
    ],
)
def test_arguments_take_the_place_of_the_images_cmd_as_in_a_pod(
    entrypoint: tuple[str, ...], cmd: tuple[str, ...], args: tuple[str, ...], before: tuple[str, ...]
) -> None:
    assert EntryPoint(entrypoint, cmd).before(args) == before


@pytest.mark.parametrize(
    ("platforms", "chosen"),
    [
        ([{**LINUX, "architecture": "arm64"}, {**LINUX, "architecture": "amd64"}], "1"),
        ([{**LINUX, "architecture": "arm64"}, {**LINUX, "architecture": "s390x"}], "0"),
        ([{"os": "windows", "architecture": "amd64"}, {**LINUX, "architecture": "arm64"}], "1"),
        ([{**LINUX, "architecture": "amd64"}, {**LINUX, "architecture": "amd64", "variant": "v3"}], "0"),
    ],
)
def test_the_variant_of_an_index_is_this_architectures_or_the_first_for_linux(
    platforms: list[dict[str, str]], chosen: str
) -> None:
    index = {"manifests": [{"digest": str(n), "platform": item} for n, item in enumerate(platforms)]}
    assert image.is_index(index, "")
    assert image.variant(index, "amd64") == chosen


@pytest.mark.parametrize("index", [{}, {"manifests": [{"digest": "1", "platform": {"os": "windows"}}]}])
def test_an_index_without_linux_is_an_error(index: dict[str, Any]) -> None:
    with pytest.raises(DocumentError, match="no variant for Linux"):
        image.variant(index, "amd64")


@pytest.mark.parametrize("config", [{"Entrypoint": "sh -c x"}, {"Cmd": [1]}, {"Entrypoint": {}}])
def test_a_configuration_of_another_form_is_an_error(config: dict[str, Any]) -> None:
    with pytest.raises(DocumentError, match="no list of texts"):
        image.entry_point({"config": config})


@pytest.mark.parametrize("document", [{}, {"config": None}, {"config": {"Entrypoint": None, "Cmd": None}}])
def test_an_image_may_start_nothing(document: dict[str, Any]) -> None:
    assert image.entry_point(document) == EntryPoint((), ())


def test_a_manifest_without_configuration_is_an_error() -> None:
    with pytest.raises(DocumentError, match="names no configuration"):
        image.config_digest({"config": {}})
