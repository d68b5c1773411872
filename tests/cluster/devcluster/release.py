"""A release: the product's images in a registry, and the chart's values that name them by digest."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from devcluster import engines, images, say
from devcluster.layout import REPOSITORY, Layout

VALUES = REPOSITORY / "build/release-values.json"
# Image -> where the chart has it.
PLACES: Mapping[str, tuple[str, ...]] = {
    "operator": ("image",),
    "relay": ("relay", "image"),
    "runtime": ("runtime", "image"),
}
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_TAG = re.compile(r"[\w][\w.-]{0,127}")


def target(registry: str, image: str, tag: str) -> str:
    """What an image is called in the registry."""
    return f"{registry.rstrip('/')}/mcpserver-operator/{image}:{tag}"


def values(registry: str, tag: str, digests: Mapping[str, str]) -> dict[str, Any]:
    """Values of the chart (JSON is YAML, too) for these digests by image.

    Raises:
        ClusterError: one of them is missing or none.

    """
    found: dict[str, Any] = {"imageRegistry": registry.rstrip("/")}
    for image, place in PLACES.items():
        digest = digests.get(image, "")
        if not _DIGEST.fullmatch(digest):
            raise say.ClusterError(f"the registry told no digest of {image}, but {digest!r}")
        level = found
        for name in place[:-1]:
            level = level.setdefault(name, {})
        level[place[-1]] = {"tag": tag, "digest": digest}
    return found


def run(where: Layout, registry: str, tag: str) -> Path:
    """Build what changed, push it, write the values; gives their file.

    Raises:
        ClusterError: names make no sense, or the registry takes the images not.

    """
    if not registry or not _TAG.fullmatch(tag):
        raise say.ClusterError(
            "name registry and tag: make release REGISTRY=registry.example.com/team TAG=1.0.0"
        )
    engine = engines.choose(where)
    wanted = [image for image in images.IMAGES if image.name in PLACES]
    references = images.build_all(engine, where, wanted)
    digests = {}
    for image, reference in references.items():
        with say.step(f"pushing {target(registry, image, tag)}"):
            digests[image] = engine.push(reference, target(registry, image, tag))
    VALUES.parent.mkdir(parents=True, exist_ok=True)
    VALUES.write_text(json.dumps(values(registry, tag, digests), indent=2) + "\n", encoding="utf-8")
    return VALUES
