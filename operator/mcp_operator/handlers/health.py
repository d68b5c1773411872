"""The operator's own probes.

Alive: neither blind nor stuck; an API server that is away is no cause to restart. Ready: it has learnt what
there is and serves it.
"""

from collections.abc import Callable, Mapping
from typing import Final

from mcp_operator.handlers.pages import Page

ALIVE_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"
# A reconcile is a handful of requests, each bounded; one that takes this long hangs.
STUCK_SECONDS: Final = 180.0

Check = Callable[[], str]


def pages(trouble: Check, waiting: Check) -> Mapping[str, Callable[[], Page]]:
    """The probes: 200 while a check returns "", else 503 with its text.

    `trouble` is asked by `GET /healthz`, and `GET /readyz` asks `waiting` as well.
    """
    return {ALIVE_PATH: lambda: _page(trouble()), READY_PATH: lambda: _page(waiting() or trouble())}


def _page(told: str) -> Page:
    return Page("503 Service Unavailable", f"{told}\n".encode()) if told else Page("200 OK", b"ok\n")
