"""What this machine knows about reaching the package registries, for images that must reach them too.

A locked-down machine has a certificate authority of its own, or a mirror; an image built here from a bare
Debian knows neither. Only where to fetch from is taken over: no credentials (they would stand in images and
in every pod), no local folders.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

BUNDLE = "/etc/ssl/certs/ca-certificates.crt"  # where Debian keeps it, on the host and in the image
# each tool has its own name for the same file
BUNDLE_VARIABLES = (
    "SSL_CERT_FILE",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
)
PASSED_VARIABLES = (
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_TRUSTED_HOST",
    "PIP_DEFAULT_TIMEOUT",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_HTTP_TIMEOUT",
    "NPM_CONFIG_REGISTRY",
    "npm_config_registry",
)
PIP_KEYS = ("global.index-url", "global.extra-index-url", "global.trusted-host", "global.timeout")
NPM_KEY = re.compile(r"(@[^:=\s]+:)?registry|strict-ssl")
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


@dataclass(frozen=True)
class HostConfig:
    """Environment and files of an image; paths are absolute in the image."""

    environment: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)


def without_credentials(text: str) -> str:
    """The text without the `user:password@` of any URL in it."""
    return _CREDENTIALS.sub("", text)


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables of an image, from this process's. Uv reads SSL_CERT_FILE, and must not fetch a Python."""
    passed = {name: without_credentials(variables[name]) for name in PASSED_VARIABLES if variables.get(name)}
    return {**dict.fromkeys(BUNDLE_VARIABLES, BUNDLE), "PIP_DISABLE_PIP_VERSION_CHECK": "1", **passed}


def pip_conf(listing: str) -> str:
    """A pip.conf with what `pip config list` says of indexes (lines such as `global.index-url='https://…'`)."""
    pairs = (line.partition("=") for line in listing.splitlines())
    kept = [f"{key.partition('.')[2]} = {value.strip(chr(39))}" for key, _, value in pairs if key in PIP_KEYS]
    return without_credentials("\n".join(["[global]", *kept, ""]))


def npmrc(*texts: str) -> str:
    """An npmrc with the registries that the given ones name; later ones win, as npm reads them."""
    kept: dict[str, str] = {}
    for line in "\n".join(texts).splitlines():
        key, separator, value = (part.strip() for part in line.partition("="))
        if separator and NPM_KEY.fullmatch(key):
            kept[key] = value
    return without_credentials("".join(f"{key}={value}\n" for key, value in kept.items()))


def bundle(variables: Mapping[str, str]) -> Path:
    """The host's certificate authorities."""
    named = variables.get("SSL_CERT_FILE")
    return Path(named) if named and Path(named).is_file() else Path(BUNDLE)


def observe(pip_listing: str, home: Path) -> HostConfig:
    """Read this machine's configuration; `pip_listing` is `pip config list`."""
    npm_files = [Path("/etc/npmrc"), Path("/usr/etc/npmrc"), Path("/usr/local/etc/npmrc"), home / ".npmrc"]
    texts = [path.read_text(encoding="utf-8") for path in npm_files if path.is_file()]
    return HostConfig(
        environment={**environment(os.environ), "NPM_CONFIG_GLOBALCONFIG": "/etc/npmrc"},
        files={
            BUNDLE: bundle(os.environ).read_text(encoding="utf-8"),
            "/etc/pip.conf": pip_conf(pip_listing),
            "/etc/npmrc": npmrc(*texts),
        },
    )
