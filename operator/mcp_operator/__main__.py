"""`python -m mcp_operator`: the operator, with settings from the environment."""

import asyncio
import logging
import os
import resource
import sys

from mcp_operator import main, settings
from mcp_operator.adapters.errors import KubeError

logger = logging.getLogger(__name__)


def lift_file_limit() -> None:
    """Open as many files as the system allows: each server costs a connection, and 1,024 is common."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        # A hard limit above fs.nr_open, or a sandbox that has its own ideas.
        logger.warning("the limit of open files cannot be raised to %d: %s", hard, error)


def start() -> int:
    """Run the operator; returns the exit code."""
    try:
        found = settings.from_environment(os.environ)
    except settings.SettingsError as error:
        sys.stderr.write(f"mcp-operator: {error}\n")
        return 2
    logging.basicConfig(level=found.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for noisy in ("kopf", "kubernetes_asyncio", "aiohttp.access", "asyncio"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, logging.getLevelName(found.log_level)))
    lift_file_limit()
    try:
        asyncio.run(main.run(found))
    except (KubeError, OSError) as error:  # no way to the API server, or a port that is taken
        sys.stderr.write(f"mcp-operator: {error}\n")
        return 1
    except asyncio.CancelledError:  # SIGTERM before there was anything to end
        return 0
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(start())
