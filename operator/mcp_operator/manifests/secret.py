"""The Secret of an MCPServer: the clients' token, the operator's, and the key that signs session ids."""

import base64
from collections.abc import Callable, Mapping
from typing import Final

from mcp_operator.core.api import AuthType, MCPServerSpec
from mcp_operator.manifests import identity, names
from mcp_operator.manifests.identity import Json, Owner
from mcp_relay_api import paths

# All keys that the Secret may have.
KEYS: Final = (paths.TOKEN_FILE, paths.ADMIN_TOKEN_FILE, paths.SIGNING_KEY_FILE)


def keys(spec: MCPServerSpec) -> tuple[str, ...]:
    """The keys that it has: no token that opens nothing, beside the user's own or where none is asked for."""
    own = spec.auth.type is AuthType.BEARER and spec.auth.bearer is None
    return KEYS if own else tuple(key for key in KEYS if key != paths.TOKEN_FILE)


def build(owner: Owner, values: Mapping[str, bytes]) -> Json:
    """The Secret with these values."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": identity.metadata(owner, names.service(owner.name)),
        "type": "Opaque",
        "data": {key: base64.b64encode(values[key]).decode() for key in KEYS if key in values},
    }


def values(found: Json | None) -> dict[str, bytes]:
    """What an existing Secret holds under KEYS; empty values count as missing."""
    data = (found or {}).get("data") or {}
    decoded = {key: base64.b64decode(data[key]) for key in KEYS if data.get(key)}
    return {key: value for key, value in decoded.items() if value.strip()}


def filled(
    found: Json | None, wanted: tuple[str, ...], fresh: Callable[[], Mapping[str, bytes]]
) -> dict[str, bytes]:
    """A value for each key that is wanted: those that are there, else from `fresh`, asked only for those."""
    there = values(found)
    return {key: there[key] if key in there else fresh()[key] for key in wanted}
