"""Kubernetes Events about an MCPServer, as `kubectl describe` shows them."""

import logging
from datetime import datetime
from typing import Any

from mcp_operator.adapters.errors import KubeError
from mcp_operator.adapters.kinds import EVENTS
from mcp_operator.adapters.kube import Kube
from mcp_operator.core.api import API_VERSION, GROUP, KIND
from mcp_operator.core.naming import FIELD_MANAGER
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


async def post(kube: Kube, owner: Owner, notes: tuple[Note, ...], now: datetime) -> None:
    """Write the Events. One that cannot be written is logged: nothing depends on it."""
    for note in notes:
        logger.info("%s/%s: %s: %s", owner.namespace, owner.name, note.reason, note.message)
        try:
            await kube.create(EVENTS, build(owner, note, now))
        except KubeError as error:
            logger.warning(
                "%s/%s: the Event %s was not written: %s", owner.namespace, owner.name, note.reason, error
            )
