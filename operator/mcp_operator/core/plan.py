"""What one run decides to do: a frozen value that prints itself for the log."""

from dataclasses import dataclass
from datetime import datetime

from mcp_operator.core.api import Phase, Reason, RecoveryAction
from mcp_operator.core.backoff import Budget
from mcp_operator.core.failure import Failure
from mcp_operator.core.observation import PodFacts


@dataclass(frozen=True)
class Plan:
    """One decision. Steps are taken in the order of the fields `delete`, `create_epoch`, `reconnect`."""

    action: RecoveryAction
    phase: Phase
    reason: Reason
    message: str
    budget: Budget
    failure: Failure | None = None
    """Shown as `status.error`; None leaves the last counted failure there."""
    passing: bool = False
    """Whether `failure` only says what is waited for: it never hides a failure that was counted."""
    look_again: datetime | None = None
    """When time alone makes a new decision necessary; None: only an event does."""
    delete: tuple[PodFacts, ...] = ()
    create_epoch: int | None = None
    """Number of the pod to create; None: create none."""
    reconnect: bool = False
    """Whether the relay is told to open its connection anew."""
    look_up: bool = False
    """Whether the registry is asked what the image starts."""
    wanted: bool = True
    """Whether the children beside the pod should exist; False while the resource goes away."""
    hold: bool = False
    """Whether the status stays as it is: what was written last is still the best that is known."""
    changed: str = ""
    """What changed since the pod was made, while the pod serves on and its replacement is still to come."""
    rule: str = ""

    def __str__(self) -> str:
        steps = [f"delete {pod.name}" for pod in self.delete if not pod.deleting]
        if self.create_epoch is not None:
            steps.append(f"create epoch {self.create_epoch}")
        if self.reconnect:
            steps.append("reconnect")
        if self.look_up:
            steps.append("look up the image")
        told = f"{self.rule}: {self.action} -> {self.phase} ({self.reason})"
        counted = f" failures={self.budget.failures}" if self.budget.failures else ""
        later = f" again={self.look_again:%H:%M:%S}" if self.look_again else ""
        return f"{told}{counted}{later}{': ' + ', '.join(steps) if steps else ''}"
