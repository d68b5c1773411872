"""Paths, ports, a reason, names of settings and of files that operator, relay and launcher agree on.

Constants only, so that importing this module costs the relay nothing.
"""

from typing import Final

# Ports of the relay container.
MCP_PORT: Final = 8080
ADMIN_PORT: Final = 8081

# HTTP paths.
MCP_PATH: Final = "/mcp"
HEALTH_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"
METRICS_PATH: Final = "/metrics"
STATUS_PATH: Final = "/status"
RECONNECT_PATH: Final = "/reconnect"
KEYS_PATH: Final = "/keys"

# The shared memory volume: launcher binary and its socket; both containers mount it.
BRIDGE_DIR: Final = "/bridge"
LAUNCHER_PATH: Final = "/bridge/launcher"
SOCKET_PATH: Final = "/bridge/server.sock"
CONTROL_PATH: Final = "/bridge/control.sock"

# The relay's own memory volume and its mounted Secret; the server's container mounts neither.
STATE_DIR: Final = "/state"
SECRETS_DIR: Final = "/secrets"

# Files below SECRETS_DIR; the first three are also the keys of the Secret that the operator makes.
TOKEN_FILE: Final = "token"  # noqa: S105 - a file name
ADMIN_TOKEN_FILE: Final = "admin-token"  # noqa: S105 - a file name
SIGNING_KEY_FILE: Final = "signing-key"

# How many tokens TOKEN_FILE may hold, one a line: all of them are valid, so that a rotation has no gap.
MAX_TOKENS: Final = 8

# Bytes that the JWK Set of a token issuer may have on its way to the relay.
MAX_KEY_SET_BYTES: Final = 64 * 1024

# Where the relay image keeps the launcher that the postStart hook copies from.
IMAGE_LAUNCHER_PATH: Final = "/usr/local/bin/mcp-launcher"

# Reasons of the error that stands with state Dropped when the process closed one of its pipes and goes on: no
# answer can come, or no request can reach it.
REASON_STDOUT_CLOSED: Final = "StdoutClosed"
REASON_STDIN_CLOSED: Final = "StdinClosed"

# Reason of the error, phase ListTools, beside a tool list to which `spec.tools.overrides` does not fit.
REASON_OVERRIDES: Final = "ToolOverridesUnmatched"

# Settings of the relay, one environment variable each (see mcp_sidecar.settings for units and defaults).
ENV_SERVER_NAME: Final = "MCP_RELAY_SERVER_NAME"
ENV_SERVER_NAMESPACE: Final = "MCP_RELAY_SERVER_NAMESPACE"
ENV_SERVER_UID: Final = "MCP_RELAY_SERVER_UID"
ENV_AUTH: Final = "MCP_RELAY_AUTH"
ENV_JWT: Final = "MCP_RELAY_JWT"
ENV_ALLOWED_HOSTS: Final = "MCP_RELAY_ALLOWED_HOSTS"
ENV_STARTUP_TIMEOUT: Final = "MCP_RELAY_STARTUP_TIMEOUT_SECONDS"
ENV_CALL_TIMEOUT: Final = "MCP_RELAY_CALL_TIMEOUT_SECONDS"
ENV_MAX_CALL: Final = "MCP_RELAY_MAX_CALL_SECONDS"
ENV_ON_SERVER_RESTART: Final = "MCP_RELAY_ON_SERVER_RESTART"
ENV_IDLE_TIMEOUT: Final = "MCP_RELAY_IDLE_TIMEOUT_SECONDS"
ENV_MAX_CLIENTS: Final = "MCP_RELAY_MAX_CLIENTS"
ENV_MAX_MESSAGE_BYTES: Final = "MCP_RELAY_MAX_MESSAGE_BYTES"
ENV_HTTP_SSE: Final = "MCP_RELAY_HTTP_SSE"
ENV_PROTOCOL: Final = "MCP_RELAY_PROTOCOL"
ENV_CLIENT_CAPABILITIES: Final = "MCP_RELAY_CLIENT_CAPABILITIES"
ENV_SESSION_MODE: Final = "MCP_RELAY_SESSION_MODE"
ENV_MAX_PROCESSES: Final = "MCP_RELAY_MAX_PROCESSES"
ENV_TOOLS_ALLOW: Final = "MCP_RELAY_TOOLS_ALLOW"
ENV_TOOLS_DENY: Final = "MCP_RELAY_TOOLS_DENY"
ENV_CALLS_PER_MINUTE: Final = "MCP_RELAY_CALLS_PER_MINUTE"
ENV_CALL_BURST: Final = "MCP_RELAY_CALL_BURST"
ENV_CONCURRENT_CALLS: Final = "MCP_RELAY_CONCURRENT_CALLS"
ENV_AUDIT: Final = "MCP_RELAY_AUDIT"
ENV_TOOLS_OVERRIDES: Final = "MCP_RELAY_TOOLS_OVERRIDES"
# The remote server in place of the one behind the socket, as JSON: url, transport, headers (name, prefix, and
# the file with the value), caFile, backoffSeconds, retryAfterErrorSeconds. The files stand below SECRETS_DIR.
ENV_REMOTE: Final = "MCP_RELAY_REMOTE"
