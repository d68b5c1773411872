"""Requests and limits for every container, so that quotas and LimitRanges let the pod in."""

from collections.abc import Mapping
from typing import Any, Final

from mcp_operator.core.api.session import SERVER_MEMORY
from mcp_operator.core.quantity import parse

Json = dict[str, Any]

SERVER_REQUESTS: Final = {"cpu": "100m", "memory": "128Mi", "ephemeral-storage": "64Mi"}
SERVER_LIMITS: Final = {"cpu": "1", "memory": SERVER_MEMORY, "ephemeral-storage": "1Gi"}
RELAY_REQUESTS: Final = {"cpu": "50m", "memory": "64Mi", "ephemeral-storage": "16Mi"}
RELAY_LIMITS: Final = {"cpu": "1", "memory": "256Mi", "ephemeral-storage": "64Mi"}


def server(wanted: Json | None) -> Json:
    """What the user names, completed key by key so that no request exceeds its limit."""
    return _completed(wanted or {}, SERVER_REQUESTS, SERVER_LIMITS)


def relay(wanted: Mapping[str, Any]) -> Json:
    """What the operator is told for every relay, completed likewise."""
    return _completed(dict(wanted), RELAY_REQUESTS, RELAY_LIMITS)


def process_memory(limits: Mapping[str, Any], wanted: str | int | None) -> int:
    """Bytes that each process of a container with these limits may hold; 0: no limit but the container's.

    Half of the container's where nothing is wanted: no less than the share of each, however many there are,
    and less than all, so that one that grows without end does not end the others.
    """
    whole = parse(limits["memory"])
    own = whole / 2 if wanted is None else parse(wanted)
    return int(own) if own < whole else 0


def _completed(asked: Json, default_requests: Mapping[str, str], default_limits: Mapping[str, str]) -> Json:
    requests, limits = dict(asked.get("requests") or {}), dict(asked.get("limits") or {})
    for key, default in default_requests.items():
        if key not in requests:
            requests[key] = _smaller(default, limits.get(key, default))
    for key, default in default_limits.items():
        if key not in limits:
            limits[key] = _larger(default, requests[key])
    return {**asked, "requests": requests, "limits": limits}


def _smaller(one: str, other: Any) -> Any:
    return one if parse(one) <= parse(other) else other


def _larger(one: str, other: Any) -> Any:
    return one if parse(one) >= parse(other) else other
