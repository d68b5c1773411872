"""What the operator knows of the cluster: fed by watches and by the answers to its own writes.

An older version never replaces a newer one, and what was deleted does not come back, unless it changed since
(an object that left a watch by its labels can come back): watches and answers arrive in any order. Of
Secrets and ConfigMaps that are not ours only digests are kept.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from mcp_operator.adapters.kinds import CONFIG_MAPS, PODS, SECRETS, WATCHED, Kind
from mcp_operator.core import naming
from mcp_operator.core.naming import Key
from mcp_operator.manifests import identity, references
from mcp_operator.manifests.secret import KEYS

Json = dict[str, Any]
DIGESTS: Final = "digests"
FAULTS: Final = "faults"
_TOMBSTONES: Final = 10_000
_POD_SPEC: Final = frozenset({"nodeName", "tolerations"})


def key_of(found: Json) -> Key:
    """Namespace and name of an object."""
    meta = found.get("metadata", {})
    return meta.get("namespace", ""), meta.get("name", "")


def uid_of(found: Json) -> str:
    """UID of an object."""
    return str(found.get("metadata", {}).get("uid", ""))


def version_of(found: Json) -> int:
    """Resource version as the number that it is; 0 if it is none."""
    text = str(found.get("metadata", {}).get("resourceVersion", ""))
    return int(text) if text.isdecimal() else 0


class Cache:
    """Objects by kind and key."""

    def __init__(self) -> None:
        self._objects: dict[Kind, dict[Key, Json]] = {kind: {} for kind in WATCHED}
        self._children: dict[Key, set[Key]] = {}
        # UID of what is gone -> the version at which it went.
        self._gone: OrderedDict[str, int] = OrderedDict()

    def get(self, kind: Kind, key: Key) -> Json | None:
        """One object, None if none is known."""
        return self._objects[kind].get(key)

    def items(self, kind: Kind) -> Iterable[tuple[Key, Json]]:
        """All objects of a kind, as they were when asked."""
        return tuple(self._objects[kind].items())

    def pods(self, owner: Key) -> Iterator[Json]:
        """The pods that an MCPServer controls."""
        pods = self._objects[PODS]
        return (pods[key] for key in sorted(self._children.get(owner, ())) if key in pods)

    def is_gone(self, uid: str) -> bool:
        """Whether the object with this UID is known to have gone."""
        return uid in self._gone

    def put(self, kind: Kind, found: Json) -> bool:
        """Take in an object; False when it was known already or is older than what is known."""
        key, uid = key_of(found), uid_of(found)
        if version_of(found) <= self._gone.get(uid, -1):
            return False
        known = self._objects[kind].get(key)
        if known is not None and version_of(known) >= version_of(found):
            return False
        self._objects[kind][key] = _trimmed(kind, found)
        if kind is PODS:
            owner = identity.owner_key(found)
            if owner is not None:
                self._children.setdefault(owner, set()).add(key)
        return True

    def remove(self, kind: Kind, found: Json) -> bool:
        """Forget this very object; False when another one or none is known under its name."""
        key, uid = key_of(found), uid_of(found)
        self._bury(uid, version_of(found))
        known = self._objects[kind].get(key)
        if known is None or uid_of(known) != uid:
            return False
        del self._objects[kind][key]
        if kind is PODS:
            self._disown(known, key)
        return True

    def _disown(self, pod: Json, key: Key) -> None:
        owner = identity.owner_key(pod)
        if owner is None or owner not in self._children:
            return
        self._children[owner].discard(key)
        if not self._children[owner]:
            del self._children[owner]

    def _bury(self, uid: str, version: int) -> None:
        self._gone[uid] = max(version, self._gone.get(uid, -1))
        while len(self._gone) > _TOMBSTONES:
            self._gone.popitem(last=False)


def _trimmed(kind: Kind, found: Json) -> Json:
    meta = {key: value for key, value in found.get("metadata", {}).items() if key != "managedFields"}
    if kind is SECRETS or kind is CONFIG_MAPS:
        kept: Json = {"metadata": _identity_only(meta), DIGESTS: references.data_digests(found)}
        faults = references.token_faults(found) if kind is SECRETS else {}
        if faults:
            kept[FAULTS] = faults
        if kind is SECRETS and naming.SERVER in meta.get("labels", {}):
            data = found.get("data") or {}
            kept["metadata"] = meta
            kept["data"] = {key: data[key] for key in KEYS if key in data}
        return kept
    trimmed = {**found, "metadata": meta}
    if kind is PODS:
        # The rest of a pod's spec is what we asked for, and large.
        trimmed["spec"] = {key: value for key, value in found.get("spec", {}).items() if key in _POD_SPEC}
    return trimmed


def _identity_only(meta: Json) -> Json:
    return {key: meta[key] for key in ("name", "namespace", "uid", "resourceVersion") if key in meta}
