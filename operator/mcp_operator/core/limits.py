"""What a LimitRange refuses names neither container nor field: they are found by the value that it names."""

import re
from collections.abc import Mapping
from typing import Any, Final

from mcp_operator.core import quantity
from mcp_operator.core.naming import RELAY_CONTAINER, SERVER_CONTAINER

Json = dict[str, Any]
# Resources of each container, by its name.
Resources = Mapping[str, Json]

_USAGE: Final = re.compile(
    r"(?P<bound>maximum|minimum) (?P<resource>\S+) usage per (?P<kind>Container|Pod) "
    r"is (?P<limit>[^,\]\s]+), but (?P<field>limit|request) is (?P<value>[^,\]\s]+)"
)
_RATIO: Final = re.compile(
    r"(?P<resource>\S+) max limit to request ratio per (?P<kind>Container|Pod) is (?P<limit>[^,\]\s]+), "
    r"but provided ratio is (?P<value>[0-9.]+)"
)
_FIELDS: Final = {SERVER_CONTAINER: "spec.resources", RELAY_CONTAINER: "the chart's value relay.resources"}
_WORDS: Final = {"maximum": ("above", "at most"), "minimum": ("below", "at least")}


def concerns(message: str) -> bool:
    """Whether an answer of the API server is a LimitRange's."""
    return bool(re.search(r"(maximum|minimum) \S+ usage per |max limit to request ratio per ", message))


def cure(message: str, resources: Resources) -> str:
    """Which containers are refused, and what to set; "" where that cannot be found out."""
    told = [_usage(found, resources) for found in _USAGE.finditer(message)]
    told += [_ratio(found, resources) for found in _RATIO.finditer(message)]
    return "; ".join(dict.fromkeys(text for text in told if text))


def _usage(found: re.Match[str], resources: Resources) -> str:
    bound, resource, field = found["bound"], found["resource"], found["field"]
    where, at = _WORDS[bound]
    if found["kind"] == "Pod":
        fields = " and ".join(f"{name}.{field}s.{resource}" for name in _FIELDS.values())
        return (
            f"the containers' {resource} {field}s together, {found['value']}, are {where} the LimitRange's "
            f"{bound} for a pod, {found['limit']}: change {fields}"
        )
    guilty = [name for name in resources if _same(resources[name], field, resource, found["value"])]
    return "; ".join(
        f'container "{name}": its {resource} {field} {found["value"]} is {where} the LimitRange\'s {bound} '
        f"{found['limit']}: set {_FIELDS[name]}.{field}s.{resource} to {at} {found['limit']}"
        for name in guilty
    )


def _ratio(found: re.Match[str], resources: Resources) -> str:
    resource = found["resource"]
    guilty = [
        name
        for name in resources
        if found["kind"] == "Pod" or _exceeds(resources[name], resource, found["limit"])
    ]
    return "; ".join(
        f'container "{name}": the LimitRange forbids a {resource} limit of more than {found["limit"]} times '
        f"the request: raise {_FIELDS[name]}.requests.{resource} or lower the limit"
        for name in guilty
    )


def _same(wanted: Json, field: str, resource: str, value: str) -> bool:
    return bool(_value(wanted, f"{field}s", resource) == quantity.parse(value))


def _exceeds(wanted: Json, resource: str, ratio: str) -> bool:
    request, limit = _value(wanted, "requests", resource), _value(wanted, "limits", resource)
    return bool(request and limit and limit / request > quantity.parse(ratio))


def _value(wanted: Json, field: str, resource: str) -> Any:
    found = (wanted.get(field) or {}).get(resource)
    return None if found is None else quantity.parse(found)
