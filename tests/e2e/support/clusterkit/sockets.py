"""The end of a connection between two other processes, made from outside of them."""

import contextlib
import ctypes
import os
import socket
from pathlib import Path

# The name of the kernel's call to take a copy of another process's open file; no library has it.
PIDFD_GETFD = 438


def shut_down(pid: int, name: str) -> None:
    """End the connection of a process to the Unix socket that it listens on, whose path has `name`.

    Raises:
        LookupError: it has none.
        OSError: it is not ours to end.

    """
    with socket.socket(fileno=copy_of_file(pid, connected_socket(pid, name))) as connection:
        connection.shutdown(socket.SHUT_RDWR)


def connected_socket(pid: int, name: str) -> int:
    """A process's file number of such a connection. Raises LookupError if there is none."""
    table = Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]
    rows = [line.split() for line in table]
    # Connected, and with the name that the socket had when it was made.
    inodes = {row[6] for row in rows if row[5] == "03" and name in row[-1]}
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            if str(file.readlink()).removeprefix("socket:[").removesuffix("]") in inodes:
                return int(file.name)
    raise LookupError(f"process {pid} has no connection to {name}")


def copy_of_file(pid: int, number: int) -> int:
    """A file number of this process for an open file of another one. Raises OSError if it must not."""
    libc = ctypes.CDLL(None, use_errno=True)
    process = os.pidfd_open(pid)
    try:
        copy: int = libc.syscall(PIDFD_GETFD, process, number, 0)
    finally:
        os.close(process)
    if copy < 0:
        raise OSError(ctypes.get_errno(), f"no copy of file {number} of process {pid}")
    return copy
