"""W3C Trace Context of a request: read from HTTP headers or from `_meta`, and put into `_meta`.

MCP names `traceparent` and `tracestate` as members of `_meta` in revision 2026-07-28 (SEP-414), the only ones
without a prefix. Earlier revisions let any name stand there, and OpenTelemetry's conventions for MCP use
these two in all of them.
"""

import re
from collections.abc import Mapping
from typing import Any

from mcp_sidecar.core import jsontext

PARENT, STATE = b"traceparent", b"tracestate"
# Version, trace id, parent id, flags; later versions may append more. `ff` and ids of zeros are invalid.
_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[!-~]*)?")
_STATE = re.compile(rb"[ -~]{1,512}")
"""W3C: at least 512 characters should be passed on; more are left out as a whole, as it allows."""
_MAX_PARENT = 128
_META = "_meta"


def trace_id(parent: object) -> str:
    """The trace id of a `traceparent`; empty if that is none."""
    if isinstance(parent, bytes):
        parent = parent.decode("latin-1")
    if not isinstance(parent, str) or len(parent) > _MAX_PARENT:
        return ""
    found = _PARENT.fullmatch(parent)
    if found is None or (parent.startswith("00") and found[2] is not None):
        return ""
    return found[1]


def said(params: Mapping[str, Any]) -> str:
    """The trace id that a request's own `_meta` names; empty if none."""
    meta = params.get(_META)
    return trace_id(meta.get(PARENT.decode())) if isinstance(meta, Mapping) else ""


def carried(data: bytes, params: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> bytes:
    """A request's text with the trace context of its HTTP headers in `_meta`.

    Unchanged where the headers have none that is valid, or where the request says itself what it belongs to.

    Args:
        data: the request on one line.
        params: its parsed params, {} if there are none.
        headers: names in lower case.

    """
    meta = params.get(_META, {})
    if not isinstance(meta, Mapping) or not trace_id(headers.get(PARENT)):
        return data
    if PARENT.decode() in meta or STATE.decode() in meta:
        return data
    members = _members(headers)
    if _META in params:
        return _inserted(data, members, "params", _META)
    if params or "params" in jsontext.keys(data):
        return _inserted(data, b'"_meta":{%b}' % members, "params")
    return _inserted(data, b'"params":{"_meta":{%b}}' % members)


def _members(headers: Mapping[bytes, bytes]) -> bytes:
    members = b'"traceparent":%b' % jsontext.dumps(headers[PARENT].decode("ascii"))
    state = headers.get(STATE, b"")
    if _STATE.fullmatch(state):
        members += b',"tracestate":%b' % jsontext.dumps(state.decode("ascii"))
    return members


def _inserted(data: bytes, members: bytes, *path: str) -> bytes:
    """The document with members put first into the object at `path`."""
    at = (jsontext.byte_span(data, *path)[0] if path else data.index(b"{")) + 1
    rest = data[at:]
    comma = b"" if rest.lstrip()[:1] == b"}" else b","
    return b"%b%b%b%b" % (data[:at], members, comma, rest)
