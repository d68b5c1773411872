"""Kubernetes Events about an MCPServer, as `kubectl describe` shows them."""

import logging
from datetime import datetime, timedelta
from typing import Any

from mcp_operator.adapters.errors import KubeError
from mcp_operator.adapters.kinds import EVENTS
from mcp_operator.adapters.kube import Kube
from mcp_operator.core.api import API_VERSION, GROUP, KIND, Phase, Reason
from mcp_operator.core.naming import FIELD_MANAGER, Key
from mcp_operator.core.transitions import Note
from mcp_operator.manifests.identity import Owner

logger = logging.getLogger(__name__)
Json = dict[str, Any]


def build(owner: Owner, note: Note, now: datetime) -> Json:
    """The Event object of a note; the API server makes up its name."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": f"{owner.name[:200].rstrip('.-')}-", "namespace": owner.namespace},
        "regarding": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": owner.name,
            "namespace": owner.namespace,
            "uid": owner.uid,
        },
        "action": "Reconcile",
        "reason": note.reason,
        "note": note.message,
        "type": "Warning" if note.warning else "Normal",
        "reportingController": f"{GROUP}/operator",
        "reportingInstance": FIELD_MANAGER,
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }


class Herald:
    """Writes Events. What must last to be worth one is held back, and dropped if it was over before."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._held: dict[Key, tuple[Note, datetime]] = {}

    def forget(self, key: Key) -> None:
        """The MCPServer is gone."""
        self._held.pop(key, None)

    async def tell(self, owner: Owner, notes: tuple[Note, ...], now: datetime) -> None:
        """Write these Events, now or when they have lasted."""
        key = (owner.namespace, owner.name)
        for note in notes:
            brief = self._held.pop(key, None)
            if note.after:
                self._held[key] = (note, now + timedelta(seconds=note.after))
            elif brief is None or note.reason != Reason.CONNECTED:
                await _post(self._kube, owner, note, now)

    async def look(self, owner: Owner, phase: Phase, now: datetime) -> None:
        """Write what was held back, once it has lasted; `phase` is the one of the plan at hand."""
        key = (owner.namespace, owner.name)
        note, due = self._held.get(key, (None, now))
        if note is None:
            return
        if phase is not Phase.RECONNECTING and phase is not Phase.CONNECTED:
            del self._held[key]
        elif phase is Phase.RECONNECTING and now >= due:
            del self._held[key]
            await _post(self._kube, owner, note, now)


async def _post(kube: Kube, owner: Owner, note: Note, now: datetime) -> None:
    """Write one Event. One that cannot be written is logged: nothing depends on it."""
    logger.info("%s/%s: %s: %s", owner.namespace, owner.name, note.reason, note.message)
    try:
        await kube.create(EVENTS, build(owner, note, now))
    except KubeError as error:
        logger.warning(
            "%s/%s: the Event %s was not written: %s", owner.namespace, owner.name, note.reason, error
        )
