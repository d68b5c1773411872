"""The faults that the suite knows: whom each one hits, what has to follow, and how often it comes."""

from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """Whom a fault hits."""

    SERVER = "server"
    """One server; others may be hit by other faults at the same time."""
    CLUSTER = "cluster"
    """The operator or the node, and so every server: nothing else happens meanwhile."""


class Effect(StrEnum):
    """What has to follow for a server."""

    RECREATED = "recreated"
    """Another pod after the backoff; one retry is spent."""
    REPLACED = "replaced"
    """Another pod at once; no retry is spent."""
    RELAY_RESTARTED = "relay restarted"
    """Same pod, same process, same session; the node started the relay's container again."""
    RECONNECTED = "reconnected"
    """Same pod, same process, same session, same relay."""
    UNTOUCHED = "untouched"
    """Nothing happens to the server."""


@dataclass(frozen=True)
class Kind:
    """One kind of fault.

    `extra`: seconds that recovery may take beyond backoff and one pod start. `weight`: how often it is
    drawn. `short`: whether the short form has it.
    """

    name: str
    scope: Scope
    effect: Effect
    extra: float = 0.0
    weight: int = 4
    short: bool = True

    @property
    def new_pod(self) -> bool:
        """Whether the server gets another pod."""
        return self.effect in (Effect.RECREATED, Effect.REPLACED)


# A new pod comes at once, but its start may share the node with up to two others and the end of the old one.
CROWD_SECONDS = 5.0
# Three failed probes, five seconds apart, each with three seconds to answer; then the pod's grace period,
# because a stopped process does not hear SIGTERM.
HUNG_SECONDS = 5 * 3 + 3 + 15 + 3
# The kubelet looks at a pod whose image failed every 10 to 20 s.
IMAGE_SECONDS = 20.0
# The kubelet measures a volume every one to two minutes, and looks for what is full every 10 s.
DISK_SECONDS = 135.0
# After an outage of the API server operator, kubelet and scheduler ask again after growing delays.
OUTAGE_SECONDS = 15.0

HUNG = "relay hung"
_S, _C = Scope.SERVER, Scope.CLUSTER
_NEW, _FREE, _RELAY = Effect.RECREATED, Effect.REPLACED, Effect.RELAY_RESTARTED

KINDS = (
    Kind("server process killed", _S, _NEW, weight=8),
    Kind("server exits with 0", _S, _NEW),
    Kind("server out of memory", _S, _NEW),
    Kind("launcher killed", _S, _NEW),
    Kind("pod deleted", _S, _FREE, CROWD_SECONDS),
    Kind("pod evicted", _S, _FREE, CROWD_SECONDS),
    Kind("pod evicted for its disk", _S, _NEW, DISK_SECONDS, weight=1, short=False),
    Kind("relay killed", _S, _RELAY, weight=6),
    Kind(HUNG, _S, _RELAY, HUNG_SECONDS, weight=2),
    Kind("launcher connection cut", _S, Effect.RECONNECTED, weight=8),
    Kind("network of the pod cut", _S, Effect.UNTOUCHED),
    Kind("image removed", _S, _NEW, IMAGE_SECONDS, weight=2),
    Kind("secret rotated", _S, _FREE, CROWD_SECONDS),
    Kind("operator killed", _C, Effect.UNTOUCHED),
    Kind("operator killed during backoff", _C, _NEW, CROWD_SECONDS),
    Kind("node drained", _C, _FREE, OUTAGE_SECONDS, weight=2),
    Kind("containerd restarted", _C, Effect.UNTOUCHED, weight=2),
    Kind("API server stopped", _C, Effect.UNTOUCHED, OUTAGE_SECONDS, weight=1),
    Kind(
        "server killed while the API server is stopped",
        _C,
        _NEW,
        OUTAGE_SECONDS,
        weight=1,
        short=False,
    ),
)
BY_NAME = {kind.name: kind for kind in KINDS}
