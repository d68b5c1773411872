"""The relay in a pod: settings from the environment, secrets from mounted files."""

import sys

from mcp_sidecar import log, service, settings
from mcp_sidecar.web.server import listen


def main() -> int:
    """Run until SIGTERM; the exit code is 0, or 2 for settings that make no sense."""
    log.configure()
    try:
        chosen = settings.from_environment()
        listener = listen(chosen.host, chosen.port)
        admin_listener = listen(chosen.host, chosen.admin_port)
        log.event(
            "starting",
            namespace=chosen.server_namespace,
            server=chosen.server_name,
            port=chosen.port,
            adminPort=chosen.admin_port,
        )
        return service.run(chosen, listener, admin_listener)
    except (settings.SettingsError, OSError) as error:
        sys.stderr.write(f"mcp_sidecar: {error}\n")
        return 2
