"""Frozen facts of one run: what was read from the cluster and from the relay, and the time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from mcp_operator.core.api import MCPServerSpec, MCPServerStatus, Phase
from mcp_relay_api.status import ErrorPhase, RelayState, RelayStatus


class ContainerState(StrEnum):
    """State of a container as the kubelet reports it; ABSENT before it has reported any."""

    ABSENT = "Absent"
    WAITING = "Waiting"
    RUNNING = "Running"
    TERMINATED = "Terminated"


@dataclass(frozen=True)
class Ending:
    """How a container ended."""

    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True)
class ContainerFacts:
    """One container. `exit_code` and `finished_at` only when terminated, `started_at` not while waiting."""

    state: ContainerState = ContainerState.ABSENT
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    restarts: int = 0
    last: Ending | None = None
    """How it ended before its last restart."""

    @property
    def running(self) -> bool:
        """Whether the container runs now."""
        return self.state is ContainerState.RUNNING

    @property
    def terminated(self) -> bool:
        """Whether the container has ended."""
        return self.state is ContainerState.TERMINATED


@dataclass(frozen=True)
class PodFacts:
    """One pod of ours. Times are aware and in UTC; texts are as the API server gave them."""

    name: str
    uid: str
    epoch: int
    config_hash: str = ""
    config: Mapping[str, str] = field(default_factory=dict)
    """The parts that it was made from; see `configuration`."""
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    deleting: bool = False
    ip: str | None = None
    scheduled: bool = False
    unschedulable: str = ""
    """The scheduler's message while no node takes the pod."""
    sandbox_ready: bool = False
    """Whether volumes are mounted and the sandbox is made; what failed before that is over."""
    ready: bool = False
    created_at: datetime | None = None
    unknown_since: datetime | None = None
    """Since when the node has not reported; None while it does."""
    node_grace_seconds: float = 300.0
    server: ContainerFacts = ContainerFacts()
    relay: ContainerFacts = ContainerFacts()

    @property
    def serving(self) -> bool:
        """Whether its server process runs and nobody ends it."""
        return self.server.running and not self.deleting and not self.ended

    @property
    def started(self) -> bool:
        """Whether its server has ever run."""
        return self.ended or self.server.running or self.server.terminated

    @property
    def ended(self) -> bool:
        """Whether the pod has reached a phase that it never leaves."""
        return self.phase in {"Succeeded", "Failed"}


@dataclass(frozen=True)
class RelayView:
    """What the relay of the current pod last said, and how often in a row it did not answer since."""

    status: RelayStatus | None = None
    failures: int = 0
    message: str = ""
    unreadable: str = ""
    """Why what it says cannot be read, while it cannot: it answers, so it is not unreachable."""

    @property
    def unheard(self) -> bool:
        """Whether no poll has come to an end yet."""
        return self.status is None and self.failures == 0 and not self.unreadable

    @property
    def usable(self) -> RelayStatus | None:
        """The report, while the session is initialised now and its tools are listed or cannot be; else None.

        A tool list is information: a broken one must not hide a working server.
        """
        told = self.status
        if told is None or self.failures or told.state is not RelayState.CONNECTED or told.session is None:
            return None
        if told.error is not None:
            return told if told.error.phase is ErrorPhase.LIST_TOOLS else None
        listed = told.tool_count is not None or "tools" not in told.session.capabilities
        return told if listed else None

    @property
    def answering(self) -> bool:
        """Whether the last poll was answered."""
        return self.status is not None and self.failures == 0


def contradicted(pod: PodFacts, view: RelayView) -> bool:
    """Whether the relay is silent though the pod is said to run, or serves though it is said not to."""
    return view.failures > 0 or (view.usable is not None and not (pod.ready and pod.relay.running))


@dataclass(frozen=True)
class EntryPointView:
    """What is known of the command that an image starts of itself."""

    command: tuple[str, ...] | None = None
    """None: not known."""
    problem: str = ""
    """Why it is not known."""
    passing: bool = False
    """Whether the problem may go by itself."""
    again: datetime | None = None
    """When to ask again."""
    asked: bool = False
    """Whether an answer is on its way."""


@dataclass(frozen=True)
class KeysView:
    """What is known of the keys of the issuer that the spec names."""

    digest: str | None = None
    """Of the set that relays are to have; None: none was fetched yet."""
    problem: str = ""
    """Why it could not be fetched the last time, or has no keys, with field and cure."""
    source: str = ""
    """By which relays tell the place where their keys come from."""
    refusal: str = ""
    """Why the server's relay did not take the set."""


@dataclass(frozen=True)
class MissingReference:
    """A Secret, a ConfigMap or a key in one that the spec names and that does not exist."""

    kind: str
    name: str
    field: str
    """Path in the resource that names it, for example `spec.env[0]`."""
    key: str | None = None
    """None: the object as a whole is missing."""
    fault: str = ""
    """Why the value of the key, which is there, cannot be used: as good as missing."""


_SERVED = frozenset({Phase.CONNECTED, Phase.RECONNECTING})


@dataclass(frozen=True)
class Observation:
    """Everything that one decision may look at. `pods` is sorted by epoch; `relay` is the newest pod's."""

    now: datetime
    name: str
    namespace: str
    generation: int
    spec: MCPServerSpec
    status: MCPServerStatus
    config_hash: str
    config: Mapping[str, str] = field(default_factory=dict)
    """The parts that the next pod is made from; see `configuration`."""
    deleting: bool = False
    invalid: str = ""
    conflict: str = ""
    """Which foreign object stands in the way."""
    predecessor: str = ""
    """Which object of a deleted MCPServer of the same name is still there."""
    predecessor_epoch: int = 0
    """The highest epoch of that one's pods: their names are taken."""
    missing: tuple[MissingReference, ...] = ()
    pods: tuple[PodFacts, ...] = ()
    relay: RelayView = field(default_factory=RelayView)
    reachable: bool = True
    """Whether the Service leads to the newest pod, as far as is known."""
    entry: EntryPointView | None = None
    """What the image starts; None: the spec has a command."""
    keys: KeysView | None = None
    """None: clients need no tokens of an issuer."""
    sandbox_error: str = ""
    """The node's message when it cannot make the pod's sandbox."""
    mount_error: str = ""
    """The node's message when it cannot mount a volume of the pod."""

    @property
    def pod(self) -> PodFacts | None:
        """The newest pod; older ones are left-overs."""
        return self.pods[-1] if self.pods else None

    @property
    def served_now(self) -> bool:
        """Whether the status says of this very pod that clients are served."""
        return self.served_before and self.status.phase is Phase.CONNECTED

    @property
    def served_before(self) -> bool:
        """Whether the status says of this very pod that its session was up; an operator may have started."""
        written, pod = self.status, self.pod
        known = written.session.pod_uid if written.session else None
        return pod is not None and written.phase in _SERVED and known == pod.uid

    @property
    def last_epoch(self) -> int:
        """The highest epoch ever used, as far as is known."""
        known = self.status.session.epoch if self.status.session else 0
        return max([known, self.predecessor_epoch, *(pod.epoch for pod in self.pods)])
