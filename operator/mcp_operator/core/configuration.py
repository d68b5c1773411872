"""What a pod is made from, part by part: a digest for each, so that a change can be told by its name.

Parts are named for people: the spec, the restart annotation, the server's own Secret, each Secret and
ConfigMap that is referred to. A pod carries them in an annotation. The digest "" says that the part was not
there, or not whole.
"""

import json
from collections.abc import Mapping
from typing import Final

from mcp_operator.core.api import RESTART_ANNOTATION

Parts = Mapping[str, str]

SPEC: Final = "the spec"
RESTART: Final = f"the annotation {RESTART_ANNOTATION}"
OWN: Final = "its own Secret (token and keys)"
OTHERS: Final = "another Secret or ConfigMap"
# Objects that are named; the others share one part. Keeps the annotation within its limit.
MAX_OBJECTS: Final = 64
_NAMED: Final = 3
_UNKNOWN: Final = "the spec, a referenced Secret or ConfigMap, or the restart annotation changed"
_OPERATOR: Final = "the operator was upgraded or has other settings: images or resources of the pod changed"


def write(parts: Parts) -> str:
    """The text of the annotation."""
    return json.dumps(dict(parts), sort_keys=True, separators=(",", ":"))


def read(text: str) -> dict[str, str]:
    """The parts in an annotation; none if it is missing or cannot be read."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def change(old: Parts, new: Parts) -> str:
    """What changed, for people."""
    if not old:
        return _UNKNOWN
    own = new.get(OWN, "")
    # Which keys it has follows from the spec; and older operators did not look at it.
    anew = old.get(SPEC) == new.get(SPEC) and old.get(OWN, own) != own
    names = sorted(({*old, *new} - {OWN}) | ({OWN} if anew else set()))
    told = [_told(name, old.get(name, ""), new.get(name, ""), keyed=anew) for name in names]
    changed = [text for text in told if text]
    if not changed:
        return _OPERATOR
    rest = len(changed) - _NAMED
    return ", ".join(changed[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def same_wish(old: Parts, new: Parts) -> bool:
    """Whether nobody asks for another pod: spec and restart annotation are the same."""
    return bool(old) and all(old.get(name) == new.get(name) for name in (SPEC, RESTART))


def completed(old: Parts, new: Parts) -> bool:
    """Whether something that was missing is there now."""
    return any(new.get(name) for name, digest in old.items() if not digest)


def _told(name: str, before: str, now: str, *, keyed: bool) -> str:
    """What became of a part; `keyed`: those of objects differ because the key they are made with does."""
    if before == now:
        return ""
    if name not in {SPEC, RESTART, OWN}:
        if not before:
            return f"{name} is there now"
        if not now:
            return f"{name} is gone, or a key of it"
        if keyed:
            return ""
    return f"{name} changed"
