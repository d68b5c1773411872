"""Holds the locked dependencies against known vulnerabilities, without a network.

    python requirements/audit.py

The data is what OSV publishes for PyPI: one JSON document for each advisory, as files or in one zip, in the
folder $ADVISORIES (build/advisories). Where there is none this says so and is no proof of anything; an
advisory that concerns a locked version ends it with 1.
"""

import json
import os
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

HERE = Path(__file__).parent
LOCKS = ("operator", "sidecar", "runtime", "cli")
"""What people run; the others are for tests."""
_LOCKED = re.compile(r"^([\w.-]+)==([^ ;\\]+)", re.MULTILINE)
_SEPARATORS = re.compile(r"[-_.]+")

Advisory = Mapping[str, Any]


def normalised(name: str) -> str:
    """A package's name as the index compares it."""
    return _SEPARATORS.sub("-", name).lower()


def locked(text: str) -> dict[str, set[str]]:
    """The versions of each package in a lock; there may be two, for different machines."""
    found: dict[str, set[str]] = {}
    for name, version in _LOCKED.findall(text):
        found.setdefault(normalised(name), set()).add(version)
    return found


def concerns(advisory: Advisory, name: str, version: str) -> bool:
    """Whether an advisory (OSV schema 1) is about this version of a package of PyPI."""
    if advisory.get("withdrawn"):
        return False
    for affected in advisory.get("affected", ()):
        package = affected.get("package", {})
        if package.get("ecosystem") != "PyPI" or normalised(package.get("name", "")) != name:
            continue
        if version in affected.get("versions", ()):
            return True
        ranges = [one for one in affected.get("ranges", ()) if one.get("type") == "ECOSYSTEM"]
        if any(_within(one.get("events", ()), Version(version)) for one in ranges):
            return True
    return False


def _within(events: Any, version: Version) -> bool:
    """Whether a version lies in a range: the last event at or below it decides."""
    inside = False
    for event in sorted(events, key=_place):
        if "introduced" in event and version >= _version(event["introduced"]):
            inside = True
        elif _passed(event, version):
            inside = False
    return inside


def _passed(event: Mapping[str, str], version: Version) -> bool:
    if "fixed" in event:
        return version >= _version(event["fixed"])
    return "last_affected" in event and version > _version(event["last_affected"])


def _place(event: Mapping[str, str]) -> Version:
    return _version(next(iter(event.values())))


def _version(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion:
        return Version("0")  # OSV's word for the beginning is "0"; what nobody can order is older than all


def advisories(folder: Path) -> Iterator[Advisory]:
    """All advisories below a folder."""
    for path in sorted(folder.rglob("*.json")):
        yield json.loads(path.read_bytes())
    for path in sorted(folder.rglob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".json"):
                    yield json.loads(archive.read(name))


def findings(locks: Mapping[str, str], folder: Path) -> tuple[int, list[str]]:
    """How many advisories were looked at, and a line for each that concerns a lock (name to text)."""
    packages = {lock: locked(text) for lock, text in locks.items()}
    count, lines = 0, []
    for advisory in advisories(folder):
        count += 1
        for lock, found in packages.items():
            for affected in {
                normalised(a.get("package", {}).get("name", "")) for a in advisory.get("affected", ())
            }:
                for version in sorted(found.get(affected, ())):
                    if concerns(advisory, affected, version):
                        what = advisory.get("summary") or "no summary"
                        lines.append(
                            f"requirements/{lock}.txt: {affected} {version}: {advisory['id']}: {what}"
                        )
    return count, sorted(set(lines))


def main() -> int:
    """Say what was found; gives the exit code."""
    folder = Path(os.environ.get("ADVISORIES") or HERE.parent / "build/advisories")
    locks = {lock: (HERE / f"{lock}.txt").read_text(encoding="utf-8") for lock in LOCKS}
    count, lines = findings(locks, folder)
    if not count:
        sys.stdout.write(
            f"    SKIPPED, nothing was held against anything: no advisories in {folder}.\n"
            "    Put OSV's archive for PyPI (all.zip) there, or name another folder in ADVISORIES.\n"
        )
        return 0
    for line in lines:
        sys.stdout.write(f"    {line}\n")
    total = sum(len(locked(text)) for text in locks.values())
    sys.stdout.write(f"    {total} locked packages, {count} advisories, {len(lines)} findings\n")
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
