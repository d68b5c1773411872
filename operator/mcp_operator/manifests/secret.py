"""The Secret of an MCPServer: the clients' token, the operator's, and the key that signs session ids."""

import base64
from collections.abc import Callable, Mapping
from typing import Final

from mcp_operator.manifests import identity, names
from mcp_operator.manifests.identity import Json, Owner
from mcp_relay_api import paths

KEYS: Final = (paths.TOKEN_FILE, paths.ADMIN_TOKEN_FILE, paths.SIGNING_KEY_FILE)


def build(owner: Owner, values: Mapping[str, bytes]) -> Json:
    """The Secret with these values, one for each of KEYS."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": identity.metadata(owner, names.service(owner.name)),
        "type": "Opaque",
        "data": {key: base64.b64encode(values[key]).decode() for key in KEYS},
    }


def values(found: Json | None) -> dict[str, bytes]:
    """What an existing Secret holds under KEYS; empty values count as missing."""
    data = (found or {}).get("data") or {}
    decoded = {key: base64.b64decode(data[key]) for key in KEYS if data.get(key)}
    return {key: value for key, value in decoded.items() if value.strip()}


def filled(found: Json | None, fresh: Callable[[], Mapping[str, bytes]]) -> dict[str, bytes]:
    """All values: the existing ones as they are, missing ones from `fresh`, which is asked only for those."""
    there = values(found)
    missing = [key for key in KEYS if key not in there]
    return {**{key: fresh()[key] for key in missing}, **there}
