"""The contract between operator and relay: what the relay is told, and what it reports.

`paths` is plain constants (the relay imports it at start and must stay light); `status` holds the
pydantic models with which the operator reads what the relay reports. Neither side imports the other.
"""
