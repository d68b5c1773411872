"""Requests and limits for every container, so that quotas and LimitRanges let the pod in."""

import re
from decimal import Decimal
from typing import Any, Final

Json = dict[str, Any]

SERVER_REQUESTS: Final = {"cpu": "100m", "memory": "128Mi", "ephemeral-storage": "64Mi"}
SERVER_LIMITS: Final = {"cpu": "1", "memory": "512Mi", "ephemeral-storage": "1Gi"}
RELAY: Final[Json] = {
    "requests": {"cpu": "50m", "memory": "64Mi", "ephemeral-storage": "16Mi"},
    "limits": {"cpu": "1", "memory": "256Mi", "ephemeral-storage": "64Mi"},
}

_QUANTITY: Final = re.compile(r"([+-]?[0-9.]+)([eE][+-]?[0-9]+|[a-zA-Z]*)")
_SUFFIXES: Final = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}


def quantity(text: Any) -> Decimal:
    """Read a Kubernetes quantity such as `100m`, `1.5`, `64Mi`, `1e3`. Raises ValueError on anything else."""
    match = _QUANTITY.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(f"{text!r} is no quantity")
    number, suffix = match.groups()
    if suffix in _SUFFIXES:
        return Decimal(number) * _SUFFIXES[suffix]
    if suffix[0] in "eE":
        return Decimal(number + suffix)
    raise ValueError(f"{text!r} is no quantity")


def server(wanted: Json | None) -> Json:
    """What the user names, completed key by key so that no request exceeds its limit."""
    asked = wanted or {}
    requests, limits = dict(asked.get("requests") or {}), dict(asked.get("limits") or {})
    for key, default in SERVER_REQUESTS.items():
        if key not in requests:
            requests[key] = _smaller(default, limits.get(key, default))
    for key, default in SERVER_LIMITS.items():
        if key not in limits:
            limits[key] = _larger(default, requests[key])
    return {**asked, "requests": requests, "limits": limits}


def _smaller(one: str, other: Any) -> Any:
    return one if quantity(one) <= quantity(other) else other


def _larger(one: str, other: Any) -> Any:
    return one if quantity(one) >= quantity(other) else other
