"""The block with which a client finds a server: Claude Desktop, VS Code, and files like .mcp.json."""

from enum import StrEnum
from typing import Any

Json = dict[str, Any]


class Client(StrEnum):
    """Whose configuration is printed."""

    MCP_JSON = "mcp-json"
    """.mcp.json of Claude Code, Cursor and others."""
    CLAUDE = "claude"
    """claude_desktop_config.json, which knows stdio servers only: mcp-remote stands between."""
    VSCODE = "vscode"
    """.vscode/mcp.json."""


def block(client: Client, name: str, url: str, token: str) -> Json:
    """The whole file's content for one server. An empty token means that the server asks for none."""
    header = {"Authorization": f"Bearer {token}"} if token else {}
    if client is Client.CLAUDE:
        return {"mcpServers": {name: _through_stdio(url, token)}}
    http = {"type": "http", "url": url, **({"headers": header} if header else {})}
    return {"servers" if client is Client.VSCODE else "mcpServers": {name: http}}


def _through_stdio(url: str, token: str) -> Json:
    words = ["-y", "mcp-remote", url, "--transport", "http-only"]
    if not token:
        return {"command": "npx", "args": words}
    # No blank in the argument: on Windows the client would cut it there.
    words += ["--header", "Authorization:${AUTH_HEADER}"]
    return {"command": "npx", "args": words, "env": {"AUTH_HEADER": f"Bearer {token}"}}
