"""The relay: holds the one MCP session with a stdio server and shares it over Streamable HTTP."""
