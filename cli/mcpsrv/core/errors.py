"""Errors for people, and the exit codes that scripts read."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process ends with."""

    OK = 0
    """Done, and the server is as it should be."""
    FAILED = 1
    """The server or the tool failed, is not Ready in time, or an entry was left out."""
    USAGE = 2
    """The command line, the file or the arguments are wrong; nothing was changed."""
    NOT_FOUND = 3
    """There is no such MCPServer, tool or pod."""
    NO_ACCESS = 4
    """The cluster cannot be reached, refuses, or lacks the operator's API."""
    INTERRUPTED = 130
    """Ctrl-C."""
    TERMINATED = 143
    """SIGTERM or SIGHUP."""


class CliError(Exception):
    """Ends the command: the message names what is wrong and the cure. `code` is the exit code."""

    code = ExitCode.FAILED


class UsageError(CliError):
    """What the user wrote is wrong."""

    code = ExitCode.USAGE


class NotFoundError(CliError):
    """What the user named does not exist."""

    code = ExitCode.NOT_FOUND


class AccessError(CliError):
    """The cluster does not let us."""

    code = ExitCode.NO_ACCESS
