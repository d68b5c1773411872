"""Errors of revision 2026-07-28: their codes, and the HTTP statuses that belong to them."""

from collections.abc import Mapping
from typing import Any

from mcp_sidecar.core import frames

HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
# The relay's own, outside of the range that JSON-RPC and MCP reserve.
UNAVAILABLE = -31000
TIMED_OUT = -31001

_STATUS: Mapping[int, int] = {
    frames.PARSE_ERROR: 400,
    frames.INVALID_REQUEST: 400,
    frames.INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    frames.METHOD_NOT_FOUND: 404,
}
# What the relay says to clients with sessions -> what it says to those without.
_OWN = {frames.SERVER_ERROR: UNAVAILABLE, frames.TIMED_OUT: TIMED_OUT}


class RejectionError(Exception):
    """A request that this revision wants refused; the message is for the client."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    def body(self, raw_id: bytes) -> bytes:
        """The error answer to the request with this id."""
        return frames.error(raw_id, self.code, str(self), self.data)


def status(code: object) -> int:
    """The HTTP status of a reply that carries an error with this code."""
    return _STATUS.get(code, 200) if isinstance(code, int) else 200


def own(code: int) -> int:
    """The code, for a client without a session, of an error that the relay itself has to tell."""
    return _OWN.get(code, code)
