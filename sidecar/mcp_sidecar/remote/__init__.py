"""The relay as client: a server that is reached by HTTP takes the place of the one behind the launcher."""
