"""What the node tells of a relay's container that has failed."""

from datetime import datetime, timedelta
from typing import Final

from mcp_operator.core import text
from mcp_operator.core.observation import ContainerFacts, ContainerState, Ending

OOM: Final = "OOMKilled"
# For so long after a restart the end before it still explains why nothing answers.
RECENT_SECONDS: Final = 60
_MAX_WORDS: Final = 300
_CURE: Final = "raise the chart's value relay.resources.limits.memory"


def stopped(relay: ContainerFacts) -> bool:
    """Whether the container has run and does not run now."""
    return relay.state in {ContainerState.WAITING, ContainerState.TERMINATED}


def cause(relay: ContainerFacts, now: datetime) -> str:
    """Why the relay does not serve: how it ended, and its last words; "" while the node knows nothing."""
    ended = _ending(relay, now)
    if ended is None:
        return ""
    if ended.reason == OOM:
        return f"the relay needed more memory than its limit and was killed: {_CURE}"
    said = [line for line in text.clean(ended.message).splitlines() if line.strip()]
    words = f": {text.line(said[-1], _MAX_WORDS)}" if said else ""
    return f"the relay ended with exit code {ended.exit_code}{words}"


def _ending(relay: ContainerFacts, now: datetime) -> Ending | None:
    if relay.terminated:
        return Ending(relay.reason, relay.message, relay.exit_code, relay.finished_at)
    last = relay.last
    if last is None or not relay.running:
        return last
    recent = last.finished_at is None or now - last.finished_at < timedelta(seconds=RECENT_SECONDS)
    return last if recent else None
