"""`subscriptions/listen`: what a client wants to hear of, and how it is told."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_sidecar.core import frames, interests, jsontext
from mcp_sidecar.core import methods as known
from mcp_sidecar.core.modern import envelope, members
from mcp_sidecar.core.modern.errors import RejectionError

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_URIS = "resourceSubscriptions"
# Field of the filter -> (capability that must have `listChanged`, notification).
_FIELDS: Mapping[str, tuple[str, str]] = {
    "toolsListChanged": ("tools", "notifications/tools/list_changed"),
    "promptsListChanged": ("prompts", "notifications/prompts/list_changed"),
    "resourcesListChanged": ("resources", "notifications/resources/list_changed"),
}


@dataclass(frozen=True, slots=True)
class Filter:
    """What is wanted: kinds of `list_changed` by the filter's fields, and resources by their URIs."""

    fields: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()

    def shape(self) -> dict[str, Any]:
        """As it is written."""
        return {**dict.fromkeys(self.fields, True), **({_URIS: list(self.uris)} if self.uris else {})}

    def methods(self) -> frozenset[str]:
        """The `list_changed` notifications that are wanted."""
        return frozenset(_FIELDS[field][1] for field in self.fields)

    def __bool__(self) -> bool:
        return bool(self.fields or self.uris)


def wanted(params: Mapping[str, Any]) -> Filter:
    """What a listen request asks for.

    Raises:
        RejectionError: it is no filter.

    """
    asked = params.get("notifications")
    if not isinstance(asked, Mapping):
        raise RejectionError(frames.INVALID_PARAMS, "Invalid params: notifications is not an object")
    uris = asked.get(_URIS, [])
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
        raise RejectionError(frames.INVALID_PARAMS, f"Invalid params: {_URIS} is not a list of URIs")
    fields = tuple(field for field in _FIELDS if asked.get(field) is True)
    return Filter(fields, tuple(dict.fromkeys(uris)))


def possible(asked: Filter, capabilities: Mapping[str, Any]) -> Filter:
    """The part of it that a server with these capabilities tells of."""
    offered = known.list_changed(capabilities)
    fields = tuple(field for field in asked.fields if _FIELDS[field][1] in offered)
    subscribes = known.may_request("resources/subscribe", "", capabilities)
    fitting = [u for u in asked.uris if len(u.encode("utf-8", "surrogatepass")) <= interests.MAX_URI_BYTES]
    return Filter(fields, tuple(fitting[: interests.MAX_SUBSCRIPTIONS]) if subscribes else ())


def everything(capabilities: Mapping[str, Any]) -> Filter:
    """All kinds of `list_changed` that the server tells of."""
    return possible(Filter(tuple(_FIELDS)), capabilities)


def for_uris(uris: Iterable[str]) -> Filter:
    """Some resources."""
    return Filter(uris=tuple(uris))


def acknowledged(raw_id: bytes, honoured: Filter) -> bytes:
    """The first message on a stream; `raw_id` is the id of its listen request."""
    shape = jsontext.dumps(honoured.shape())
    return b'{"jsonrpc":"2.0","method":"%b","params":{"_meta":{"%b":%b},"notifications":%b}}' % (
        ACKNOWLEDGED.encode(), envelope.SUBSCRIPTION_KEY.encode(), raw_id, shape,
    )  # fmt: skip


def ended(raw_id: bytes) -> bytes:
    """The answer to a listen request that ends in good order."""
    meta = b'{"%b":%b}' % (envelope.SUBSCRIPTION_KEY.encode(), raw_id)
    return frames.result(raw_id, b'{"resultType":"complete","_meta":%b}' % meta)


def subscription(params: Mapping[str, Any]) -> Any:
    """The id of the listen request that a notification belongs to; None: to none."""
    meta = params.get("_meta")
    return meta.get(envelope.SUBSCRIPTION_KEY) if isinstance(meta, Mapping) else None


def tagged(data: bytes, params: Mapping[str, Any], raw_id: bytes) -> bytes:
    """A notification as one that belongs to this listen request."""
    put = {envelope.SUBSCRIPTION_KEY: raw_id}
    if isinstance(params.get("_meta"), Mapping):
        return members.edited(data, ("params", "_meta"), put=put)
    meta = b'{"%b":%b}' % (envelope.SUBSCRIPTION_KEY.encode(), raw_id)
    if params or b'"params"' in data:
        return members.edited(data, ("params",), put={"_meta": meta})
    return members.edited(data, (), put={"params": b'{"_meta":%b}' % meta})


def untagged(data: bytes, params: Mapping[str, Any]) -> bytes:
    """A notification as one that belongs to no listen request."""
    meta = params.get("_meta")
    if isinstance(meta, Mapping) and len(meta) == 1 and envelope.SUBSCRIPTION_KEY in meta:
        return members.edited(data, ("params",), drop=("_meta",))
    return members.edited(data, ("params", "_meta"), drop=(envelope.SUBSCRIPTION_KEY,))
