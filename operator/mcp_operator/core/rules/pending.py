"""Rows about a pod whose containers do not run yet. None of them costs a retry."""

import re
from dataclasses import dataclass, replace
from datetime import timedelta

from mcp_operator.core import failure, relay
from mcp_operator.core.api import ErrorPhase, Phase, Reason, RecoveryAction
from mcp_operator.core.failure import Failure
from mcp_operator.core.observation import ContainerFacts, ContainerState, MissingReference, PodFacts
from mcp_operator.core.plan import Plan
from mcp_operator.core.rules.row import Case, Row, left_overs, refuse

# How long a pod may be without any word from the node before its events are read.
SILENCE_SECONDS = 4.0
SILENCE_LOOK_SECONDS = 15.0

_PULLING = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError"})
_BAD_IMAGE = frozenset({"InvalidImageName", "ErrImageNeverPull"})
_CREATING = frozenset({"", "ContainerCreating", "PodInitializing"})
_BACK_OFF_PREFIX = re.compile(r'^Back-off pulling image "[^"]*"(: )?(ErrImagePull: )?')
_PULL_CURE = "{}: {}: correct the name, or name a Secret in spec.imagePullSecrets; the node keeps trying"
_RELAY_IMAGE = "the relay's image, which the chart names by relay.image"
_ROOT = re.compile(r"runAsNonRoot|run as root|non-root policy|non-numeric user")


@dataclass(frozen=True)
class Obstacle:
    """What keeps a pod from running; `for_good`: waiting does not help."""

    failure: Failure
    for_good: bool = False


def _unschedulable(case: Case) -> Plan | None:
    pod = case.seen.pod
    if pod is None or not pod.unschedulable:
        return None
    found = failure.failure(ErrorPhase.SCHEDULING, Reason.UNSCHEDULABLE, pod.unschedulable, case.now)
    return _wait(case, found.reason, found.message, found)


def _pending_for_good(case: Case) -> Plan | None:
    found = obstacle(case)
    if found is None or not found.for_good:
        return None
    return replace(refuse(case, found.failure), delete=left_overs(case))


def _held_up(case: Case) -> Plan | None:
    found = obstacle(case)
    return None if found is None else _wait(case, found.failure.reason, found.failure.message, found.failure)


def _on_its_way(case: Case) -> Plan | None:
    pod = case.seen.pod
    if pod is None or _up(pod):
        return None
    return _wait(case, Reason.POD_PENDING, _progress(pod), None)


def silent(pod: PodFacts, now_timestamp: float) -> bool:
    """Whether the node should have said more by now, so that its events are worth reading."""
    if _up(pod) or pod.deleting or pod.sandbox_ready or not pod.scheduled or pod.created_at is None:
        return False
    return _blocked(pod).reason in _CREATING and now_timestamp - pod.created_at.timestamp() >= SILENCE_SECONDS


def obstacle(case: Case) -> Obstacle | None:
    """What keeps the pod from running, if anything is known to."""
    pod = case.seen.pod
    if pod is None or _up(pod):
        return None
    container = _blocked(pod)
    broken = relay.cause(pod.relay, case.now) if container is pod.relay else ""
    if broken:
        return Obstacle(failure.failure(ErrorPhase.CONTAINER_START, Reason.RELAY_FAILED, broken, case.now))
    if container.reason in _CREATING:
        return _sandbox_obstacle(case)
    return _container_obstacle(case, container, "spec.image" if container is pod.server else _RELAY_IMAGE)


def missing_message(missing: MissingReference, namespace: str) -> str:
    """What is missing, where it is asked for, and the cure."""
    what = f'{missing.field}: {missing.kind} "{missing.name}"'
    if missing.fault:
        return f'{what}: the value of its key "{missing.key}" {missing.fault}: put a token there'
    if missing.key is None:
        return f'{what} not found: create it in namespace "{namespace}"'
    return f'{what} has no key "{missing.key}": add it, in namespace "{namespace}"'


def missing_reason(missing: MissingReference) -> Reason:
    """The reason that goes with a missing reference."""
    if missing.fault:
        return Reason.INVALID_TOKEN
    whole = missing.key is None
    if missing.kind == "Secret":
        return Reason.SECRET_NOT_FOUND if whole else Reason.SECRET_KEY_NOT_FOUND
    return Reason.CONFIG_MAP_NOT_FOUND if whole else Reason.CONFIG_MAP_KEY_NOT_FOUND


def _sandbox_obstacle(case: Case) -> Obstacle | None:
    if case.seen.sandbox_error:
        message = f"the node cannot make the pod's sandbox: {case.seen.sandbox_error}"
        found = failure.failure(ErrorPhase.SANDBOX, Reason.SANDBOX_FAILED, message, case.now)
        return Obstacle(found, for_good=True)
    if case.seen.missing:
        return _missing(case)
    if case.seen.mount_error:
        message = f"the node cannot mount a volume: {case.seen.mount_error}"
        found = failure.failure(ErrorPhase.CONTAINER_START, Reason.CONTAINER_CREATE_FAILED, message, case.now)
        return Obstacle(found)
    return None


def _container_obstacle(case: Case, container: ContainerFacts, image: str) -> Obstacle:
    reason, message = container.reason, container.message or container.reason
    if reason in _PULLING:
        detail = _BACK_OFF_PREFIX.sub("", message)
        known = "" if detail else _last_pull_message(case)
        told = known or _PULL_CURE.format(image, detail or message)
        return Obstacle(failure.failure(ErrorPhase.IMAGE_PULL, Reason.IMAGE_PULL_FAILED, told, case.now))
    if reason in _BAD_IMAGE:
        told = f"{image}: {message}: correct the name or the pull policy"
        return Obstacle(
            failure.failure(ErrorPhase.IMAGE_PULL, Reason.INVALID_IMAGE_NAME, told, case.now), True
        )
    if reason == "CreateContainerConfigError" and not _ROOT.search(message):
        return _missing(case) if case.seen.missing else Obstacle(_cannot_create(case, message))
    if reason in {"CreateContainerConfigError", "CreateContainerError"}:
        cure = (
            ": set spec.podSecurityContext.runAsUser to a number other than 0"
            if _ROOT.search(message)
            else ""
        )
        return Obstacle(_cannot_create(case, message + cure), for_good=True)
    found = failure.failure(ErrorPhase.CONTAINER_START, Reason.CONTAINER_START_FAILED, message, case.now)
    return Obstacle(found)


def _cannot_create(case: Case, message: str) -> Failure:
    told = f"the node cannot make the container: {message}"
    return failure.failure(ErrorPhase.CONTAINER_START, Reason.CONTAINER_CREATE_FAILED, told, case.now)


def _missing(case: Case) -> Obstacle:
    first = case.seen.missing[0]
    message = missing_message(first, case.seen.namespace)
    return Obstacle(failure.failure(ErrorPhase.CONTAINER_START, missing_reason(first), message, case.now))


def _last_pull_message(case: Case) -> str:
    # The back-off state has lost the cause; what was written with the error state still tells it.
    error = case.seen.status.error
    return error.message if error is not None and error.reason == Reason.IMAGE_PULL_FAILED else ""


def _blocked(pod: PodFacts) -> ContainerFacts:
    """The container that holds the pod up: the relay starts first."""
    return pod.server if pod.relay.running and pod.server.state is not ContainerState.ABSENT else pod.relay


def _up(pod: PodFacts) -> bool:
    return pod.server.state in {ContainerState.RUNNING, ContainerState.TERMINATED}


def _progress(pod: PodFacts) -> str:
    if not pod.scheduled:
        return "the pod waits for a node"
    return (
        "the relay runs, the server's container is being made"
        if pod.relay.running
        else "the pod is being made"
    )


def _wait(case: Case, reason: Reason, message: str, found: Failure | None) -> Plan:
    pod = case.seen.pod
    look = None
    if pod is not None and pod.scheduled and pod.created_at is not None:
        first = pod.created_at + timedelta(seconds=SILENCE_SECONDS)
        look = first if first > case.now else case.now + timedelta(seconds=SILENCE_LOOK_SECONDS)
    return Plan(
        action=RecoveryAction.WAIT,
        phase=Phase.PENDING,
        reason=reason,
        message=message,
        budget=case.budget,
        failure=found,
        passing=True,
        look_again=look if found is None else None,
        delete=left_overs(case),
    )


ROWS = (
    Row("Pending, no node takes it", "wait; the scheduler's message stands in status", "no", _unschedulable),
    Row(
        "Pending for good (bad image name, create error, root user refused, no sandbox possible)",
        "phase Error; wait for a change",
        "no",
        _pending_for_good,
    ),
    Row(
        "Pending, held up (image pull fails, a Secret or ConfigMap is missing, a volume cannot be mounted)",
        "wait; reason of the waiting state in status",
        "no",
        _held_up,
    ),
    Row("Pending, scheduled or pulling", "wait", "no", _on_its_way),
)
