"""The retry budget: which failures were counted, when the next attempt comes, when counting starts anew."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from mcp_operator.core.api.spec import Recovery
from mcp_operator.core.api.status import MCPServerStatus, RecoveryStatus


@dataclass(frozen=True)
class Budget:
    """What is known of past failures; it lives in `status.recovery`."""

    config_hash: str
    failures: int = 0
    next_attempt: datetime | None = None
    failed_epoch: int | None = None
    drops_since: datetime | None = None
    """When the first of the breaks was that follow each other closely; None while the connection holds."""

    def exhausted(self, recovery: Recovery) -> bool:
        """Whether all retries have been used."""
        return self.failures > recovery.max_retries

    def counted(self, epoch: int) -> bool:
        """Whether the failure of this pod was counted already."""
        return self.failed_epoch is not None and self.failed_epoch >= epoch

    def due(self, now: datetime) -> bool:
        """Whether nothing has to be waited for."""
        return self.next_attempt is None or now >= self.next_attempt


def restore(status: MCPServerStatus, generation: int, config_hash: str) -> Budget:
    """The budget as it was written last; a fresh one when spec, references or restart mark changed since."""
    written = status.recovery or RecoveryStatus()
    if status.observed_generation != generation or written.config_hash != config_hash:
        return Budget(config_hash)
    return Budget(
        config_hash=config_hash,
        failures=written.consecutive_failures,
        next_attempt=written.next_attempt_time,
        failed_epoch=written.failed_epoch,
        drops_since=written.drops_since,
    )


def count(budget: Budget, epoch: int, now: datetime, recovery: Recovery) -> Budget:
    """One failure more, of the pod with this epoch (or of the attempt to make it)."""
    return replace(missed(budget, now, recovery), failed_epoch=epoch, drops_since=None)


def missed(budget: Budget, now: datetime, recovery: Recovery) -> Budget:
    """One failure more, of no pod."""
    failures = budget.failures + 1
    seconds = delay(failures, recovery)
    following = None if seconds is None else now + timedelta(seconds=seconds)
    return replace(budget, failures=failures, next_attempt=following)


def delay(failures: int, recovery: Recovery) -> float | None:
    """Seconds from the n-th failure (from 1) to the next attempt; None: there is none."""
    if failures > recovery.max_retries:
        return recovery.retry_after_error_seconds or None
    steps = recovery.backoff_seconds
    return steps[min(failures, len(steps)) - 1]


def attempted(budget: Budget) -> Budget:
    """The attempt that was waited for is being made, with another pod."""
    return replace(budget, next_attempt=None, drops_since=None)


def dropped(budget: Budget, since: datetime) -> Budget:
    """The connection broke: the first break counts until it holds again."""
    return budget if budget.drops_since is not None else replace(budget, drops_since=since)


def settled(budget: Budget) -> Budget:
    """All is well for long enough: counting starts anew."""
    return Budget(budget.config_hash)
