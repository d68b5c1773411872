"""FastMCP's proxy as it comes, in front of a stdio server: `fastmcp_peer.py PORT CMD ARGS…`.

Runs in the peers' own environment, where `fastmcp` is installed.
"""

import sys
from typing import Any


def main() -> None:
    from fastmcp.client.transports import StdioTransport  # type: ignore[import-not-found] # not a dependency
    from fastmcp.server import create_proxy  # type: ignore[import-not-found] # not a dependency

    port, command, *arguments = sys.argv[1:]
    proxy: Any = create_proxy(StdioTransport(command=command, args=arguments), name="proxy")
    proxy.run(
        transport="http",
        host="127.0.0.1",
        port=int(port),
        path="/mcp",
        show_banner=False,
        log_level="WARNING",
    )


if __name__ == "__main__":
    main()
