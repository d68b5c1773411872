"""Images without content: what registries keep of them, and how it is put there."""

import hashlib
import json
import ssl
from dataclasses import dataclass, field
from typing import Any

import httpx

from mcp_operator.core.oci.image import INDEXES, MANIFESTS

CONFIG = "application/vnd.oci.image.config.v1+json"


@dataclass
class Shelf:
    """One repository of a registry, written over its own API."""

    url: str
    """For example `http://127.0.0.1:5000/v2/team/server`."""
    headers: dict[str, str] = field(default_factory=dict)
    believed: ssl.SSLContext | bool = True
    """Whose certificates, over TLS."""

    def image(self, tag: str, config: dict[str, Any], architecture: str = "amd64") -> str:
        """Put an image there; gives the digest of its manifest."""
        document = {"architecture": architecture, "os": "linux", "config": config, "rootfs": {}}
        content = json.dumps(document).encode()
        described = {"mediaType": CONFIG, "size": len(content), "digest": self._blob(content)}
        manifest = {"schemaVersion": 2, "mediaType": MANIFESTS[0], "config": described, "layers": []}
        return self._manifest(tag, manifest)

    def index(self, tag: str, variants: dict[str, str]) -> str:
        """Put an index there: digests of manifests by architecture."""
        entries = [
            {
                "mediaType": MANIFESTS[0],
                "digest": digest,
                "size": 1,
                "platform": {"os": "linux", "architecture": architecture},
            }
            for architecture, digest in variants.items()
        ]
        return self._manifest(tag, {"schemaVersion": 2, "mediaType": INDEXES[0], "manifests": entries})

    def _blob(self, content: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        with httpx.Client(headers=self.headers, verify=self.believed) as http:
            begun = http.post(f"{self.url}/blobs/uploads/").raise_for_status()
            place = httpx.URL(begun.headers["location"]).copy_add_param("digest", digest)
            http.put(place, content=content).raise_for_status()
        return digest

    def _manifest(self, tag: str, manifest: dict[str, Any]) -> str:
        content = json.dumps(manifest).encode()
        headers = {**self.headers, "Content-Type": manifest["mediaType"]}
        place = f"{self.url}/manifests/{tag}"
        httpx.put(place, content=content, headers=headers, verify=self.believed).raise_for_status()
        return f"sha256:{hashlib.sha256(content).hexdigest()}"
