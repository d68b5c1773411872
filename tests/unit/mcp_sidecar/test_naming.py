import pytest

from mcp_sidecar.core.naming import server_name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/usr/bin/serve --port 1 last", "serve"),
        ("mcp-server-git --repository /tmp", "mcp-server-git"),
        ("npx -y @modelcontextprotocol/server-everything stdio", "server-everything"),
        ("npx --yes @scope/server-time@2.1 --zone x", "server-time"),
        ("npx -p some-package", "some-package"),
        ("uvx mcp-server-time --local-timezone=Europe/Berlin", "mcp-server-time"),
        ("/opt/bin/uvx mcp-server-time==1.2 x", "mcp-server-time"),
        ("uv tool run mcp-server-time@latest", "mcp-server-time"),
        ("uv run server.py last", "server.py"),
        ("pipx run mcp-server-time", "mcp-server-time"),
        ("python -m mcp_time --zone x", "mcp_time"),
        ("/venv/bin/python3.11 -u /srv/app/server.py answer", "server.py"),
        ("python -c pass", "python"),
        ("node dist/index.js", "index.js"),
        ("node -e 1", "node"),
        ("python", "python"),
        ("npx", "npx"),
        ("/", "/"),
    ],
)
def test_a_server_is_called_after_its_program_or_package(command: str, name: str) -> None:
    assert server_name(command.split()) == name
