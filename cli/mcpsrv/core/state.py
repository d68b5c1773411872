"""Reading an MCPServer's status: plain dictionaries in, a few plain words out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_operator.core.api import ConditionType, Phase

Json = dict[str, Any]

ANSWERED: Final = "True"


def status(server: Mapping[str, Any]) -> Json:
    """The status; empty before the operator has written one."""
    found = server.get("status")
    return found if isinstance(found, dict) else {}


def condition(server: Mapping[str, Any], kind: ConditionType) -> Json:
    """One condition; empty if there is none of this type."""
    found = status(server).get("conditions") or ()
    return next((one for one in found if one.get("type") == kind), {})


def phase(server: Mapping[str, Any]) -> str:
    """The phase; Pending before there is one."""
    return str(status(server).get("phase") or Phase.PENDING)


def is_current(server: Mapping[str, Any]) -> bool:
    """Whether the status is about the spec as it stands."""
    return int(status(server).get("observedGeneration") or 0) >= int(
        server["metadata"].get("generation") or 0
    )


def is_ready(server: Mapping[str, Any]) -> bool:
    """Whether clients are served now, by the spec as it stands."""
    return is_current(server) and condition(server, ConditionType.READY).get("status") == ANSWERED


def is_stalled(server: Mapping[str, Any]) -> bool:
    """Whether no progress comes by itself."""
    return is_current(server) and condition(server, ConditionType.STALLED).get("status") == ANSWERED


def is_refused(server: Mapping[str, Any]) -> bool:
    """Whether the spec, or what it refers to, is not usable."""
    found = condition(server, ConditionType.ACCEPTED)
    return is_current(server) and found.get("status") == "False" and found.get("reason") != "NotObserved"


def epoch(server: Mapping[str, Any]) -> int:
    """Number of the pod; 0 before there was one."""
    return int((status(server).get("session") or {}).get("epoch") or 0)


def pod_name(server: Mapping[str, Any]) -> str:
    """Name of the pod; "" if none is known."""
    return str((status(server).get("session") or {}).get("podName") or "")


@dataclass(frozen=True)
class Situation:
    """Why it is as it is, in the operator's words."""

    phase: str
    reason: str
    message: str

    @property
    def stage(self) -> str:
        """Phase and reason."""
        return stage(self.phase, self.reason)


def stage(phase: str, reason: str) -> str:
    """`phase, reason`, or one word where both are the same."""
    return phase if phase == reason else f"{phase}, {reason}"


def situation(server: Mapping[str, Any]) -> Situation:
    """The condition that tells most: the first that is not as it should be."""
    if is_ready(server):
        found = condition(server, ConditionType.READY)
        return Situation(phase(server), str(found.get("reason", "")), str(found.get("message", "")))
    order = (ConditionType.ACCEPTED, ConditionType.AVAILABLE, ConditionType.VERIFIED, ConditionType.READY)
    for kind in (ConditionType.STALLED, *order):
        found = condition(server, kind)
        bad = ANSWERED if kind is ConditionType.STALLED else "False"
        if found.get("status") == bad and found.get("reason") != "NotObserved":
            return Situation(phase(server), str(found.get("reason", "")), str(found.get("message", "")))
    return Situation(phase(server), "NotObserved", "the operator has not looked at it yet")
