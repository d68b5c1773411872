"""Images by digest: what a release writes for the chart."""

from pathlib import Path

import pytest

from devcluster import engines, images, layout, release, say
from devcluster.__main__ import parse

DIGESTS = {name: f"sha256:{digit * 64}" for name, digit in zip(release.PLACES, "abc", strict=True)}


def test_the_values_name_each_image_where_the_chart_has_it() -> None:
    assert release.values("registry.example.com/team/", "1.2.3", DIGESTS) == {
        "imageRegistry": "registry.example.com/team",
        "image": {"tag": "1.2.3", "digest": "sha256:" + "a" * 64},
        "relay": {"image": {"tag": "1.2.3", "digest": "sha256:" + "b" * 64}},
        "runtime": {"image": {"tag": "1.2.3", "digest": "sha256:" + "c" * 64}},
    }


@pytest.mark.parametrize("told", ["", "1.2.3", "sha256:abc", "sha256:" + "g" * 64])
def test_no_value_is_written_for_an_image_whose_digest_is_not_known(told: str) -> None:
    with pytest.raises(say.ClusterError, match="relay"):
        release.values("registry.example.com", "1", DIGESTS | {"relay": told})


@pytest.mark.parametrize(
    ("registry", "tag"), [("", "1"), ("r.example", ""), ("r.example", "a b"), ("r.example", "-1")]
)
def test_a_release_without_sensible_names_says_how_to_give_them(registry: str, tag: str) -> None:
    with pytest.raises(say.ClusterError, match="make release REGISTRY="):
        release.run(layout.of_user(), registry, tag)


def test_every_image_of_the_product_is_released_under_the_charts_name() -> None:
    assert set(release.PLACES) == {image.name for image in images.IMAGES} - {"testserver"}
    assert release.target("r.example/x/", "relay", "1") == "r.example/x/mcpserver-operator/relay:1"
    assert vars(parse(["release", "r.example", "1"])) == {
        "command": "release",
        "registry": "r.example",
        "tag": "1",
    }


def test_docker_tells_the_digest_that_the_named_registry_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "other.example/relay@sha256:00\nr.example:5000/relay@sha256:11\n"
    asked: list[list[str]] = []

    def run(words: list[str]) -> str:
        asked.append(words)
        return told if "inspect" in words else ""

    monkeypatch.setattr("devcluster.shell.run", run)
    assert engines.Docker().push("local/relay:dev", "r.example:5000/relay:1") == "sha256:11"
    assert [words[1] for words in asked] == ["tag", "push", "inspect"]


def test_buildah_tells_the_digest_that_it_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def run(words: list[str | Path], log: Path | None = None) -> str:
        asked.extend(map(str, words))
        Path(words[words.index("--digestfile") + 1]).write_text("sha256:22\n")
        return ""

    monkeypatch.setattr("devcluster.shell.run", run)
    engine = engines.Buildah(layout.of_user())
    assert engine.push("localhost/relay:dev", "r.example/relay:1") == "sha256:22"
    assert "--tls-verify=true" in asked
    assert asked[-2:] == ["localhost/relay:dev", "docker://r.example/relay:1"]
