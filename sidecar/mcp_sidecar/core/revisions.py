"""Revisions of the protocol, and what the relay itself asks for."""

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST = LEGACY[-1]


def negotiate(asked: object) -> str:
    """The revision for a client that asked for `asked`: that one if it is known, else the newest."""
    return asked if isinstance(asked, str) and asked in LEGACY else LATEST
