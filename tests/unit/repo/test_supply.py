"""What an image says that it holds, and what is known against it."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import audit
import sbom

ROOT = Path(__file__).resolve().parents[3]
REPORT = {
    "version": "1",
    "install": [
        {
            "metadata": {"name": "Uvloop_X", "version": "0.22.1", "license_expression": "MIT OR Apache-2.0"},
            "download_info": {
                "url": "https://index.example/uvloop.whl",
                "archive_info": {"hashes": {"sha256": "ab" * 32}},
            },
        },
        {"metadata": {"name": "plain", "version": "1+local"}, "download_info": {"url": "file:///x"}},
    ],
}


def test_a_package_is_told_with_version_licence_and_the_hash_of_what_was_installed() -> None:
    first, second = sbom.python_packages(REPORT)
    assert first == {
        "type": "library", "bom-ref": "pkg:pypi/uvloop-x@0.22.1", "name": "Uvloop_X", "version": "0.22.1",
        "purl": "pkg:pypi/uvloop-x@0.22.1", "hashes": [{"alg": "SHA-256", "content": "ab" * 32}],
        "licenses": [{"expression": "MIT OR Apache-2.0"}],
    }  # fmt: skip
    assert second["purl"] == "pkg:pypi/plain@1%2Blocal"
    assert "index.example" not in json.dumps([first, second])


def test_packages_of_the_distribution_are_told() -> None:
    [one] = sbom.distribution_packages("libc6\t2.41-12+deb13u1\tamd64\n", "debian")
    assert one["purl"] == "pkg:deb/debian/libc6@2.41-12%2Bdeb13u1?arch=amd64"
    [epoch] = sbom.distribution_packages("git\t1:2.47\tall\n", "debian")
    assert epoch["purl"] == "pkg:deb/debian/git@1%3A2.47?arch=all"


def test_a_go_program_tells_what_built_it() -> None:
    text = b"go1.26.6"
    data = b"\x7fELF..\xff Go buildinf:\x08\x02" + bytes(16) + bytes([len(text)]) + text + b"rest"
    program, library = sbom.go_program("mcp-launcher", data)
    assert (program["type"], len(program["hashes"][0]["content"])) == ("application", 64)
    assert library["purl"] == "pkg:golang/stdlib@1.26.6"
    assert len(sbom.go_program("other", b"no Go")) == 1


def test_what_compiled_code_has_of_its_compiler_is_told_in_the_version_of_the_lock() -> None:
    part = sbom.linked("mypy", "mypy-extensions==1.2.0 \\\n    --hash=x\nmypy==2.4.1 \\\n    --hash=y\n")
    assert part["purl"] == "pkg:pypi/mypy@2.4.1"
    with pytest.raises(ValueError, match="mypy is not in the lock"):
        sbom.linked("mypy", "mypy-extensions==1.2.0\n")


def test_the_same_image_gives_the_same_document_and_no_reference_twice() -> None:
    parts = sbom.python_packages(REPORT)
    document = sbom.document("relay", reversed(parts))
    assert document == sbom.document("relay", parts)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    references = [item["bom-ref"] for item in document["components"]]
    assert len(references) == len(set(references))
    assert document["serialNumber"] != sbom.document("relay", parts[:1])["serialNumber"]


@pytest.mark.parametrize("image", ["operator", "sidecar", "runtime"])
def test_every_image_makes_its_bill_of_materials(image: str) -> None:
    names = {
        "operator": "operator/Dockerfile",
        "sidecar": "sidecar/Dockerfile",
        "runtime": "sidecar/runtime.Dockerfile",
    }
    text = (ROOT / names[image]).read_text(encoding="utf-8")
    assert "--report" in text
    assert "sbom.py --name" in text
    assert "/usr/share/sbom/" in text


def advisory(**affected: Any) -> dict[str, Any]:
    package = {"ecosystem": "PyPI", "name": "Some_Package"}
    return {"id": "PYSEC-1", "summary": "bad", "affected": [{"package": package, **affected}]}


def ranged(*events: dict[str, str]) -> dict[str, Any]:
    return advisory(ranges=[{"type": "ECOSYSTEM", "events": list(events)}])


@pytest.mark.parametrize(
    ("given", "version", "concerned"),
    [
        (advisory(versions=["1.0", "1.1"]), "1.1", True),
        (advisory(versions=["1.0", "1.1"]), "1.2", False),
        (ranged({"introduced": "0"}, {"fixed": "2.0"}), "1.9", True),
        (ranged({"introduced": "0"}, {"fixed": "2.0"}), "2.0", False),
        (ranged({"introduced": "1.10"}, {"fixed": "1.12"}), "1.9", False),
        (ranged({"introduced": "1.10"}, {"last_affected": "1.12"}), "1.12", True),
        (ranged({"introduced": "1.10"}, {"last_affected": "1.12"}), "1.13", False),
        (ranged({"fixed": "1.2"}, {"introduced": "0"}, {"introduced": "2"}, {"fixed": "2.1"}), "2.0.5", True),
        (ranged({"fixed": "1.2"}, {"introduced": "0"}, {"introduced": "2"}, {"fixed": "2.1"}), "1.5", False),
        (ranged({"introduced": "0"}) | {"withdrawn": "2026-01-01T00:00:00Z"}, "1.0", False),
        (
            {
                "id": "X",
                "affected": [{"package": {"ecosystem": "npm", "name": "some-package"}, "versions": ["1.0"]}],
            },
            "1.0",
            False,
        ),
    ],
)
def test_an_advisory_concerns_the_versions_that_it_names(
    given: dict[str, Any], version: str, concerned: bool
) -> None:
    assert audit.concerns(given, "some-package", version) is concerned


def test_findings_name_lock_package_and_advisory_from_files_and_archives(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(ranged({"introduced": "0"})))
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("two.json", json.dumps(advisory(versions=["9"])))
    locks = {"relay": "some.package==1.5 \\\n    --hash=sha256:00\nother==9\n", "cli": "other==1\n"}
    count, lines = audit.findings(locks, tmp_path)
    assert count == 2
    assert lines == ["requirements/relay.txt: some-package 1.5: PYSEC-1: bad"]


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "requirements/audit.py")]
    return subprocess.run(
        command, env={"ADVISORIES": str(folder)}, capture_output=True, text=True, check=False, timeout=30
    )


def test_an_audit_without_data_says_that_it_was_none(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "SKIPPED" in done.stdout


def test_a_locked_package_with_an_advisory_fails_the_audit(tmp_path: Path) -> None:
    bad = ranged({"introduced": "0"})
    bad["affected"][0]["package"]["name"] = "uvloop"
    (tmp_path / "bad.json").write_text(json.dumps(bad))
    done = run(tmp_path)
    assert done.returncode == 1
    assert "requirements/sidecar.txt: uvloop" in done.stdout
