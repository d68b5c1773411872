"""Find and remove what a dead node leaves on the host: mounts, shims, processes of pods, cgroups."""

import contextlib
import functools
import os
import re
import signal
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from devcluster import configs, processes, shell
from devcluster.layout import Layout

CGROUPS = Path("/sys/fs/cgroup")


def parse_mounts(mountinfo: str) -> list[str]:
    """Mount points, in the order they were mounted. Octal escapes (space is \\040) are undone."""

    def plain(field: str) -> str:
        return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)

    return [plain(line.split()[4]) for line in mountinfo.splitlines()]


def mounts_below(mountinfo: str, roots: Iterable[Path]) -> list[str]:
    """Mount points inside any of `roots`, in the order in which they can be unmounted: newest first."""
    inside = tuple(f"{root}/" for root in roots)
    return [point for point in reversed(parse_mounts(mountinfo)) if f"{point}/".startswith(inside)]


def unmount(roots: Iterable[Path]) -> int:
    """Unmount everything below `roots`; the number of mounts."""
    points = mounts_below(Path("/proc/self/mountinfo").read_text(encoding="utf-8"), roots)
    for start in range(0, len(points), 50):
        shell.run(["umount", "--lazy", *points[start : start + 50]])
    return len(points)


def is_shim_of(words: Sequence[str], socket: Path) -> bool:
    """Whether a command line is that of a shim which reports to the containerd at `socket`."""
    return Path(words[0]).name.startswith("containerd-shim") and ("-address", str(socket)) in pairwise(words)


def _all_pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def shim_pids(where: Layout) -> list[int]:
    """Shims of this node's containerd: they outlive it, and only their arguments tell whose they are."""
    return [pid for pid in _all_pids() if is_shim_of(command_line(pid) or [""], where.containerd_socket)]


def is_own_program(words: Sequence[str], where: Layout, names: Iterable[str]) -> bool:
    """Whether a command line is that of one of the node's own long-running programs."""
    program = Path(words[0])
    if program.name == "containerd":
        return str(where.etc / "containerd.toml") in words
    return program.name in names and program.is_relative_to(where.tools)


def stray_pids(where: Layout, names: Sequence[str]) -> list[int]:
    """Programs of the node without a record: whoever started them was killed, or the records are lost."""
    return [pid for pid in _all_pids() if is_own_program(command_line(pid) or [""], where, names)]


def command_line(pid: int) -> list[str]:
    """The arguments of a process; none if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def own_cgroups() -> list[Path]:
    """The node's cgroup in each hierarchy (one if the host has version 2)."""
    candidates = [CGROUPS, *CGROUPS.iterdir()]
    return [path for root in candidates if (path := root / configs.CGROUP.strip("/")).is_dir()]


def make_cgroups() -> None:
    """Make the cgroup that holds all pods, in each hierarchy."""
    roots = [CGROUPS] if (CGROUPS / "cgroup.controllers").exists() else sorted(CGROUPS.iterdir())
    for root in roots:
        if not (root / "cgroup.procs").exists() or root.is_symlink():
            continue
        group = root / configs.CGROUP.strip("/")
        group.mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):  # version 1 starts with none, and then takes no process
            if (group / name).exists() and not (group / name).read_text(encoding="utf-8").strip():
                (group / name).write_text((root / name).read_text(encoding="utf-8"), encoding="utf-8")


def pod_pids() -> set[int]:
    """Every process in the node's cgroups."""
    pids: set[int] = set()
    for group in own_cgroups():
        for file in group.rglob("cgroup.procs"):
            with contextlib.suppress(FileNotFoundError):
                pids.update(int(word) for word in file.read_text(encoding="utf-8").split())
    return pids


def kill(pids: Iterable[int]) -> None:
    """SIGKILL and wait until they are gone."""
    targets = [record for pid in pids if (record := processes.observe(pid))]
    for record in targets:
        with contextlib.suppress(ProcessLookupError):
            os.kill(record.pid, signal.SIGKILL)
    shell.wait_until(
        "processes of pods end", lambda: not any(map(processes.is_alive, targets)), 20, every=0.02
    )


def remove_cgroups() -> None:
    """Remove the node's cgroups, inner ones first."""
    for group in own_cgroups():
        inner = sorted(
            (path for path in group.rglob("*") if path.is_dir()), key=lambda path: -len(path.parts)
        )
        for path in [*inner, group]:
            shell.wait_until(f"{path} can be removed", functools.partial(_remove, path), 10, every=0.02)


def _remove(path: Path) -> bool:
    try:
        path.rmdir()
    except FileNotFoundError:
        return True
    except OSError:  # busy for a moment after its last process ended
        return False
    return True


def remove_container_logs(where: Layout, folder: Path = Path("/var/log/containers")) -> None:
    """The kubelet links every container's log there."""
    for link in folder.glob("*.log"):
        if link.is_symlink() and str(link.readlink()).startswith(str(where.state)):
            link.unlink()
