"""Builders of the objects that belong to an MCPServer: pure, plain dictionaries, one file per concern."""
