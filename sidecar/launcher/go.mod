module mcp-session.dev/launcher

go 1.25
