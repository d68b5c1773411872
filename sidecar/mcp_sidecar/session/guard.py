"""What each client may take, and the record of what it did; where neither is wanted there is no guard."""

import asyncio
import logging
import math
import socket
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from mcp_sidecar import log
from mcp_sidecar.core import bucket, frames, record, tracing
from mcp_sidecar.core.bucket import Limits
from mcp_sidecar.core.modern import methods
from mcp_sidecar.metrics import Metrics
from mcp_sidecar.session.calls import Call, RefusedError

MAX_KNOWN = 4096
"""Clients whose rate is remembered; above it the one that was quiet longest is forgotten."""
CONCURRENT_RETRY_SECONDS = 1
_TOO_MANY = 429
_LINES = "mcp_relay_audit_lines"
_PREFIX_BYTES = 8  # of an IPv6 address: what one site has


class Visit:
    """One request from its admission to its end."""

    __slots__ = ("_guard", "_held", "_told", "facts", "key", "started")

    def __init__(
        self, guard: "Guard", key: str, started: float, facts: dict[str, Any], *, held: bool
    ) -> None:
        self._guard = guard
        self._held = held  # counts as open
        self._told = False
        self.key = key
        """Whom its limits count for."""
        self.started = started
        self.facts = facts
        """What the audit log says of it."""

    def follow(self, call: Call) -> None:
        """The request became a call, which may have its answer already."""
        call.visit = self
        if call.answer is not None:
            self.leave()

    def leave(self) -> None:
        """It is not open any more."""
        if self._held:
            self._held = False
            self._guard.left(self.key)

    def finished(self, call: Call) -> None:
        """The call that it became was answered."""
        self.ended(call.outcome, sum(map(len, call.answer or ())))

    def ended(self, outcome: str, response_bytes: int = 0, code: int | None = None) -> None:
        """It was answered; `code` is that of a refusal. Only the first time counts."""
        self.leave()
        if not self._told:
            self._told = True
            self._guard.ended(self, outcome, response_bytes, code)


class Audit:
    """Writes lines in order, those of one turn of the event loop at once."""

    def __init__(self, metrics: Metrics, write: Callable[[bytes], None]) -> None:
        self._metrics = metrics
        self._write = write
        self._lines: list[str] = []
        self._loop = asyncio.get_running_loop()

    def add(self, fields: Mapping[str, Any]) -> None:
        """Write one line soon."""
        if not self._lines:
            self._loop.call_soon(self.flush)
        self._lines.append(record.line(fields))

    def flush(self) -> None:
        """Write what waits."""
        lines, self._lines = self._lines, []
        if not lines:
            return
        try:
            self._write(("\n".join(lines) + "\n").encode("ascii"))
        except OSError as error:
            self._metrics.count(_LINES, "lost", len(lines))
            log.event("audit_unwritable", logging.WARNING, lines=len(lines), error=str(error.strerror))
            return
        self._metrics.count(_LINES, "written", len(lines))


def to_stdout(data: bytes) -> None:
    """Write to stdout; waits until it is taken, so no call goes unrecorded because a reader is slow."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


class Guard:
    """Admits requests and records them.

    Args:
        limits: what one client may do.
        audit: where the record goes; None: nowhere.
        metrics: where refusals are counted.
        clock: a steady clock, in seconds.

    """

    def __init__(
        self, limits: Limits, audit: Audit | None, metrics: Metrics, clock: Callable[[], float]
    ) -> None:
        self._limits = limits
        self._audit = audit
        self._metrics = metrics
        self._clock = clock
        self._spread: OrderedDict[str, float] = OrderedDict()
        self._open: dict[str, int] = {}

    def enter(
        self, frame: frames.Frame, key: str, facts: Mapping[str, Any], headers: Mapping[bytes, bytes]
    ) -> Visit:
        """Admit a request.

        Args:
            frame: the request.
            key: whom limits count it for.
            facts: what is known of the client and the message.
            headers: of the HTTP request, names in lower case.

        Raises:
            RefusedError: its client is over a limit. That is recorded.

        """
        held = frame.method != methods.LISTEN  # a subscription is a stream, no work of the server
        visit = Visit(self, key, self._clock(), self._facts(frame, facts, headers), held=held)
        if held:
            self._open[key] = self._open.get(key, 0) + 1
        try:
            self._check(key, visit.started)
        except RefusedError as refusal:
            visit.ended("limited", code=refusal.code)
            raise
        return visit

    def _facts(
        self, frame: frames.Frame, facts: Mapping[str, Any], headers: Mapping[bytes, bytes]
    ) -> dict[str, Any]:
        if self._audit is None:
            return {}
        name = frame.params.get("name") if frame.method == "tools/call" else None
        traced = tracing.said(frame.params) or tracing.trace_id(headers.get(tracing.PARENT))
        return {
            **facts,
            "method": record.text(frame.method),
            **({"tool": record.text(name)} if isinstance(name, str) else {}),
            **({"traceId": traced} if traced else {}),
        }

    def _check(self, key: str, now: float) -> None:
        limits = self._limits
        if limits.concurrent and self._open.get(key, 0) > limits.concurrent:
            text = f"Too many calls at once: this client may have {limits.concurrent}; wait for their answers"
            raise self._over("concurrency", text, CONCURRENT_RETRY_SECONDS)
        if not limits.per_minute:
            return
        spread, wait = bucket.take(self._spread.get(key, 0.0), now, limits)
        if wait:
            text = f"Too many calls: this client may make {limits.per_minute} a minute"
            raise self._over("rate", text, math.ceil(wait))
        self._spread[key] = spread
        self._spread.move_to_end(key)
        if len(self._spread) > MAX_KNOWN:
            self._spread.popitem(last=False)

    def _over(self, reason: str, text: str, seconds: int) -> RefusedError:
        self._metrics.count("mcp_relay_requests_refused", reason)
        text = f"{text}. Try again in {seconds} s"
        data = {"reason": reason, "retry_after_seconds": seconds}
        return RefusedError(frames.SERVER_ERROR, text, data, _TOO_MANY, seconds)

    def left(self, key: str) -> None:
        """A request of that client is not open any more."""
        self._open[key] -= 1
        if self._open[key] <= 0:
            del self._open[key]

    def ended(self, visit: Visit, outcome: str, response_bytes: int, code: int | None) -> None:
        """Record a request that was answered."""
        if self._audit is None:
            return
        self._audit.add(
            {
                "time": log.stamp(time.time()),
                "event": "call",
                **visit.facts,
                "outcome": outcome,
                **({} if code is None else {"code": code}),
                "durationSeconds": round(self._clock() - visit.started, 6),
                "responseBytes": response_bytes,
            }
        )

    def close(self) -> None:
        """Write what is not written yet."""
        if self._audit is not None:
            self._audit.flush()


def counted_for(subject: str, session: str, peer: str, *, shared: bool) -> str:
    """Whom limits count a request for.

    Args:
        subject: who was authenticated.
        session: name of the session; empty for a request without one.
        peer: the client's address.
        shared: whether all clients are one subject, so that only sessions and addresses tell them apart.

    """
    if not shared:
        return f"subject {subject}"
    return f"session {session}" if session else f"address {source(peer)}"


def source(address: str) -> str:
    """The address, or of an IPv6 address the part that one site has: the rest its clients choose freely."""
    try:
        packed = socket.inet_pton(socket.AF_INET6, address.partition("%")[0])
    except (OSError, ValueError):
        return address
    if packed.startswith(b"\0" * 10 + b"\xff\xff"):
        return socket.inet_ntop(socket.AF_INET, packed[12:])
    return packed[:_PREFIX_BYTES].hex()
