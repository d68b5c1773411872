"""Reads a pod as the API server gives it into `PodFacts`."""

from typing import Any, Final

from mcp_operator.core import configuration, times
from mcp_operator.core.naming import CONFIG, CONFIG_HASH, EPOCH, RELAY_CONTAINER, SERVER_CONTAINER
from mcp_operator.core.observation import ContainerFacts, ContainerState, Ending, PodFacts

Json = dict[str, Any]

# Kubernetes adds this toleration to every pod; after so long on an unreachable node a pod is evicted.
_DEFAULT_GRACE: Final = 300.0
_EPOCH_DIGITS: Final = 15
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"


def facts(pod: Json) -> PodFacts:
    """The facts about one of our pods. An epoch that cannot be read counts as 0."""
    meta, spec, status = pod.get("metadata", {}), pod.get("spec", {}), pod.get("status", {})
    conditions: dict[str, Json] = {item.get("type"): item for item in status.get("conditions", ())}
    scheduled = conditions.get("PodScheduled", {})
    server, relay = _containers(status)
    return PodFacts(
        name=meta.get("name", ""),
        uid=meta.get("uid", ""),
        epoch=_epoch(meta.get("labels", {}).get(EPOCH, "")),
        config_hash=meta.get("annotations", {}).get(CONFIG_HASH, ""),
        config=configuration.read(meta.get("annotations", {}).get(CONFIG, "")),
        phase=status.get("phase", "Pending"),
        reason=status.get("reason", ""),
        message=status.get("message", ""),
        deleting="deletionTimestamp" in meta,
        ip=status.get("podIP"),
        scheduled=bool(spec.get("nodeName")),
        unschedulable=_unschedulable(scheduled),
        sandbox_ready=conditions.get("PodReadyToStartContainers", {}).get("status") == "True",
        ready=conditions.get("Ready", {}).get("status") == "True",
        created_at=times.parse(meta.get("creationTimestamp")),
        unknown_since=_unknown_since(status.get("phase"), conditions.get("Ready", {})),
        node_grace_seconds=_node_grace(spec.get("tolerations", ())),
        server=server,
        relay=relay,
    )


def _containers(status: Json) -> tuple[ContainerFacts, ContainerFacts]:
    """Server and relay. A remote server has no container: it counts as running from the relay's first start.

    What becomes of it later is for the relay to tell, which the node starts again when it ends.
    """
    containers = status.get("containerStatuses", ())
    if not any(item.get("name") == RELAY_CONTAINER for item in containers):  # an init container then
        relay = _container(status.get("initContainerStatuses", ()), RELAY_CONTAINER)
        return _container(containers, SERVER_CONTAINER), relay
    relay = _container(containers, RELAY_CONTAINER)
    if not (relay.running or relay.terminated or relay.last):
        return relay, relay
    started = relay.started_at or (relay.last.finished_at if relay.last else relay.finished_at)
    return ContainerFacts(ContainerState.RUNNING, started_at=started), relay


def _epoch(label: str) -> int:
    return int(label) if label.isdecimal() and len(label) <= _EPOCH_DIGITS else 0


def _unschedulable(condition: Json) -> str:
    if condition.get("status") != "False" or condition.get("reason") != "Unschedulable":
        return ""
    return str(condition.get("message") or "no node takes the pod")


def _unknown_since(phase: str | None, ready: Json) -> Any:
    if phase != "Unknown" and ready.get("status") != "Unknown":
        return None
    return times.parse(ready.get("lastTransitionTime"))


def _node_grace(tolerations: Any) -> float:
    for toleration in tolerations:
        if toleration.get("key") == _UNREACHABLE and toleration.get("effect") == "NoExecute":
            seconds = toleration.get("tolerationSeconds")
            return float("inf") if seconds is None else float(seconds)
    return _DEFAULT_GRACE


def _container(statuses: Any, name: str) -> ContainerFacts:
    found = next((item for item in statuses if item.get("name") == name), None)
    if found is None:
        return ContainerFacts()
    state: Json = found.get("state") or {"waiting": {}}
    kind = next(iter(state))
    detail: Json = state[kind] or {}
    return ContainerFacts(
        state=ContainerState(kind.capitalize()),
        reason=detail.get("reason", ""),
        message=detail.get("message", ""),
        exit_code=detail.get("exitCode"),
        started_at=times.parse(detail.get("startedAt")),
        finished_at=times.parse(detail.get("finishedAt")),
        restarts=found.get("restartCount", 0),
        last=_last((found.get("lastState") or {}).get("terminated")),
    )


def _last(ended: Json | None) -> Ending | None:
    if not ended:
        return None
    return Ending(
        reason=ended.get("reason", ""),
        message=ended.get("message", ""),
        exit_code=ended.get("exitCode"),
        finished_at=times.parse(ended.get("finishedAt")),
    )
