"""Tells what an image holds, as CycloneDX 1.6 JSON. Run by the image's own build; needs no other package.

    python3 sbom.py --name relay --report FILE [--program FILE] [--linked PACKAGE LOCK] > relay.cdx.json

Packages of Python come from pip's report of their installation, with the hash of the very file that was
installed; those of the distribution from dpkg; a Go program tells the version of Go that built it; what is
linked into compiled code has the version of the compiler's lock. There is no time and no random number in it:
the same image gives the same text.
"""

import argparse
import hashlib
import json
import platform
import re
import subprocess
import sys
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

Json = dict[str, Any]
_NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")  # of URLs, RFC 9562
_BUILD_INFO = b"\xff Go buildinf:"  # debug/buildinfo of Go: 16 bytes, flags in the last; inline since Go 1.18
_INLINE = 2
_INLINE_AT = 32
_DPKG = "${Package}\t${Version}\t${Architecture}\n"


def python_packages(report: Mapping[str, Any]) -> list[Json]:
    """The components of pip's installation report (its version 1)."""
    found = []
    for item in report["install"]:
        metadata = item["metadata"]
        name = metadata["name"].lower().replace("_", "-")
        component = _component("library", metadata["name"], metadata["version"], f"pkg:pypi/{name}")
        digest = item.get("download_info", {}).get("archive_info", {}).get("hashes", {}).get("sha256")
        if digest:
            component["hashes"] = [{"alg": "SHA-256", "content": digest}]
        if metadata.get("license_expression"):
            component["licenses"] = [{"expression": metadata["license_expression"]}]
        found.append(component)
    return found


def distribution_packages(listed: str, distribution: str) -> list[Json]:
    """The components of dpkg's list, one package a line: name, version, architecture."""
    found = []
    for line in listed.splitlines():
        name, version, architecture = line.split("\t")
        purl = f"pkg:deb/{distribution}/{quote(name)}"
        found.append(_component("library", name, version, purl, f"?arch={architecture}"))
    return found


def go_program(name: str, data: bytes) -> list[Json]:
    """A Go program, and the library it was built with."""
    program: Json = {"type": "application", "name": name, "bom-ref": f"program:{name}"}
    program["hashes"] = [{"alg": "SHA-256", "content": hashlib.sha256(data).hexdigest()}]
    version = go_version(data)
    library = [_component("library", "stdlib", version, "pkg:golang/stdlib")] if version else []
    return [program, *library]


def go_version(data: bytes) -> str:
    """The version of Go that a program was built by, such as `1.26.6`; empty if it does not tell."""
    at = data.find(_BUILD_INFO)
    if at < 0 or not data[at + 15] & _INLINE:
        return ""
    length = data[at + _INLINE_AT]
    text = data[at + _INLINE_AT + 1 :][:length].decode("ascii", "replace")
    return text.removeprefix("go").partition(" ")[0]


def linked(name: str, lock: str) -> Json:
    """A package of which compiled code holds a part, in the version of a lock."""
    found = re.search(rf"^{re.escape(name)}==([^ ;\\\n]+)", lock, re.MULTILINE)
    if found is None:
        raise ValueError(f"{name} is not in the lock")
    part = {"properties": [{"name": "part", "value": "runtime, linked into compiled modules"}]}
    return _component("library", name, found[1], f"pkg:pypi/{name}") | part


def _component(kind: str, name: str, version: str, purl: str, qualifiers: str = "") -> Json:
    whole = f"{purl}@{quote(version)}{qualifiers}"
    return {"type": kind, "bom-ref": whole, "name": name, "version": version, "purl": whole}


def document(name: str, components: Iterable[Json]) -> Json:
    """The whole document, of components in the order of their names."""
    listed = sorted(components, key=lambda item: item["bom-ref"])
    text = json.dumps(listed, sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, text)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "container",
                "bom-ref": f"image:{name}",
                "name": f"mcpserver-operator/{name}",
            }
        },
        "components": listed,
    }


def _distribution() -> str:
    lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    fields = dict(line.split("=", 1) for line in lines if "=" in line)
    return fields["ID"].strip('"')


def main() -> None:
    """Write the document to stdout."""
    parser = argparse.ArgumentParser(description="Tell what an image holds, as CycloneDX.")
    parser.add_argument("--name", required=True, help="the image's name")
    parser.add_argument("--report", required=True, type=Path, help="pip's installation report")
    parser.add_argument("--program", action="append", default=[], type=Path, help="a Go program in the image")
    parser.add_argument("--linked", nargs=2, action="append", default=[], metavar=("PACKAGE", "LOCK"))
    options = parser.parse_args()
    listed = subprocess.run(
        ["dpkg-query", "--show", f"--showformat={_DPKG}"], capture_output=True, text=True, check=True
    )
    components = [
        *python_packages(json.loads(options.report.read_text(encoding="utf-8"))),
        *distribution_packages(listed.stdout, _distribution()),
        _component("platform", "python", platform.python_version(), "pkg:generic/python"),
    ]
    for program in options.program:
        components += go_program(program.name, program.read_bytes())
    components += [linked(name, Path(lock).read_text(encoding="utf-8")) for name, lock in options.linked]
    json.dump(document(options.name, components), sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
