"""A transient copy of an MCPServer for a test: other names, nothing shared with what is live."""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from mcp_operator.core.api import API_VERSION, KIND
from mcpsrv.core.errors import UsageError

Json = dict[str, Any]

LABEL: Final = "mcpsrv.mcp-session.dev/test"
EXPIRES: Final = "mcpsrv.mcp-session.dev/expires"
_MAX_NAME: Final = 40
_COPIED: Final = frozenset({"Secret", "ConfigMap"})
# A test tells at once; retries would only hide the first failure.
_RECOVERY: Final = {"maxRetries": 0, "retryAfterErrorSeconds": 0}


@dataclass(frozen=True)
class Copy:
    """What a test applies, in order, the MCPServer last; `notes` tell how it differs from the original."""

    original: str
    objects: tuple[Json, ...]
    notes: tuple[str, ...]

    @property
    def server(self) -> Json:
        """The MCPServer."""
        return self.objects[-1]


def servers(documents: Iterable[Any]) -> tuple[Json, ...]:
    """The MCPServers among the documents of a file. Raises UsageError if there are none."""
    found = tuple(d for d in documents if isinstance(d, dict) and d.get("kind") == KIND)
    if not found:
        raise UsageError(f"the file holds no {KIND}: it needs a document with `kind: {KIND}`")
    for one in found:
        if one.get("apiVersion") != API_VERSION:
            raise UsageError(f"apiVersion must be {API_VERSION}, it is {one.get('apiVersion')!r}")
        if not isinstance(one.get("spec"), dict) or not (one.get("metadata") or {}).get("name"):
            raise UsageError(f"a {KIND} of the file lacks metadata.name or spec")
    return found


def duplicate(server: Json, documents: Iterable[Any], namespace: str, tag: str, expires: str) -> Copy:
    """The copy of one MCPServer with the Secrets and ConfigMaps that the file has for it.

    `tag` makes the names unique; `expires` is the time (RFC 3339) after which anybody may remove the rest.
    """
    name = server["metadata"]["name"]
    given = [d for d in documents if isinstance(d, dict) and d.get("kind") in _COPIED]
    renamed = {(d["kind"], d["metadata"]["name"]): f"{_short(d['metadata']['name'])}-{tag}" for d in given}
    metadata = {
        "namespace": namespace,
        "labels": {LABEL: tag},
        "annotations": {EXPIRES: expires},
    }
    children = tuple(
        {**d, "metadata": {**metadata, "name": renamed[d["kind"], d["metadata"]["name"]]}} for d in given
    )
    spec, notes = _spec(server["spec"], renamed)
    made = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {**metadata, "name": f"{_short(name)}-{tag}"},
        "spec": spec,
    }
    return Copy(name, (*children, made), notes)


def _short(name: str) -> str:
    return name[: _MAX_NAME - 12].rstrip(".-")


def _spec(original: Json, renamed: Mapping[tuple[str, str], str]) -> tuple[Json, tuple[str, ...]]:
    spec = copy.deepcopy(original)
    notes = []
    spec.pop("suspend", None)
    spec["recovery"] = {**(spec.get("recovery") or {}), **_RECOVERY}
    for volume in spec.get("volumes") or ():
        claim = volume.pop("persistentVolumeClaim", None)
        if claim is not None:
            volume["emptyDir"] = {}
            notes.append(
                f"volume {volume.get('name')}: an empty folder instead of the claim "
                f"{claim.get('claimName')}, whose data "
                "a test must not touch"
            )
        if "hostPath" in volume:
            notes.append(
                f"volume {volume.get('name')}: the test uses the same folder of the node as the original"
            )
    _rename(spec, renamed)
    return spec, tuple(notes)


# Fields that name a Secret or ConfigMap, the kind, and the key below that holds the name.
_REFERENCES: Final = {
    "secretKeyRef": ("Secret", "name"),
    "secretRef": ("Secret", "name"),
    "secret": ("Secret", "secretName"),
    "configMapKeyRef": ("ConfigMap", "name"),
    "configMapRef": ("ConfigMap", "name"),
    "configMap": ("ConfigMap", "name"),
}


def _rename(value: Any, renamed: Mapping[tuple[str, str], str]) -> None:
    """Every reference to an object that is copied too becomes one to the copy, in place."""
    for item in value if isinstance(value, list) else ():
        _rename(item, renamed)
    for key, item in value.items() if isinstance(value, dict) else ():
        if key in _REFERENCES and isinstance(item, dict):
            _refer(item, *_REFERENCES[key], renamed)
        if key == "imagePullSecrets":
            for one in item or ():
                _refer(one, "Secret", "name", renamed)
        _rename(item, renamed)


def _refer(item: Json, kind: str, field: str, renamed: Mapping[tuple[str, str], str]) -> None:
    # A projected volume says `name` where a volume of its own says `secretName`.
    for place in {field, "name"} & set(item):
        item[place] = renamed.get((kind, item[place]), item[place])


def is_over(expires: str, now: datetime) -> bool:
    """Whether a copy with this annotation may be removed by anybody; one without a time never."""
    try:
        return datetime.fromisoformat(expires) < now
    except ValueError:
        return False
