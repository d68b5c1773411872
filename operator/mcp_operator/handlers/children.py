"""NetworkPolicy, Service and Secret of an MCPServer: what is there, what should be, and whose it is."""

import asyncio
import secrets
from dataclasses import dataclass, field
from typing import Any

from mcp_operator.adapters.errors import RefusedChildError, RefusedError
from mcp_operator.adapters.kinds import NETWORK_POLICIES, SECRETS, SERVICES, Kind
from mcp_operator.adapters.kube import Kube
from mcp_operator.core.api import MCPServerSpec
from mcp_operator.core.naming import Key
from mcp_operator.handlers.cache import Cache
from mcp_operator.manifests import identity, names, network, secret, service
from mcp_operator.manifests.identity import Owner
from mcp_operator.manifests.merge import contains
from mcp_operator.settings import Settings

Json = dict[str, Any]
TOKEN_BYTES = 32
CONFLICT = 'the {kind} "{name}" exists and belongs to someone else: delete it or rename the MCPServer'


@dataclass(frozen=True)
class Children:
    """What was found, and what has to be written."""

    values: dict[str, bytes] = field(default_factory=dict)
    conflict: str = ""
    """An object of someone else's that stands in the way."""
    predecessor: str = ""
    """An object of a deleted MCPServer of the same name that is still there."""
    protect: tuple[tuple[Kind, Json], ...] = ()
    """To be written before there is a pod: what fences it in."""
    apply: tuple[tuple[Kind, Json], ...] = ()
    """To be written while the pod comes up."""


class Nursery:
    """Looks after all children but the pods."""

    def __init__(self, kube: Kube, cache: Cache, settings: Settings) -> None:
        self._kube = kube
        self._cache = cache
        self._settings = settings
        # Values of a Secret that is not written yet, by UID of the owner: the pod's hash depends on them.
        self._fresh: dict[str, dict[str, bytes]] = {}

    async def look(self, owner: Owner, spec: MCPServerSpec) -> Children:
        """What there is and what has to be done. The API server is asked only for what is not known."""
        key = (owner.namespace, names.service(owner.name))
        kinds = (NETWORK_POLICIES, SERVICES, SECRETS)
        there = await asyncio.gather(*(self._find(kind, key) for kind in kinds))
        for kind, found in zip(("NetworkPolicy", "Service", "Secret"), there, strict=True):
            if found is not None and not identity.owned(found, owner):
                return _not_ours(found, owner, kind)
        values = secret.filled(there[2], secret.keys(spec), lambda: self._made(owner))
        bodies = (
            network.build(owner, spec, self._settings),
            service.build(owner),
            secret.build(owner, values),
        )
        drifted = [
            (kind, body)
            for kind, found, body in zip(kinds, there, bodies, strict=True)
            if not contains(found, _essence(body)) or (kind is SECRETS and _surplus(found, body))
        ]
        return Children(
            values,
            protect=tuple(child for child in drifted if child[0] is NETWORK_POLICIES),
            apply=tuple(child for child in drifted if child[0] is not NETWORK_POLICIES),
        )

    async def protect(self, children: Children) -> None:
        """Write what has to be there before the pod. Raises like `apply`."""
        for kind, body in children.protect:
            await self._write(kind, body)

    async def apply(self, owner: Owner, children: Children) -> None:
        """Write what has to be written beside the pod.

        Raises:
            RefusedChildError: the API server refused one of them; the others are written all the same.
            KubeError: one of them could not be written.

        """
        results = await asyncio.gather(
            *(self._write(kind, body) for kind, body in children.apply), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result
        self._fresh.pop(owner.uid, None)

    async def _write(self, kind: Kind, body: Json) -> None:
        try:
            self._cache.put(kind, await self._kube.apply(kind, body))
        except RefusedError as error:
            what = f'the {body["kind"]} "{body["metadata"]["name"]}"'
            raise RefusedChildError(what, error) from error

    def forget(self, uid: str) -> None:
        """The owner is gone."""
        self._fresh.pop(uid, None)

    async def _find(self, kind: Kind, key: Key) -> Json | None:
        known = self._cache.get(kind, key)
        if known is not None and identity.owner_key(known) is not None:
            return known
        found = await self._kube.read(kind, *key)
        if found is not None:
            self._cache.put(kind, found)
        return found

    def _made(self, owner: Owner) -> dict[str, bytes]:
        if owner.uid not in self._fresh:
            self._fresh[owner.uid] = {
                name: secrets.token_urlsafe(TOKEN_BYTES).encode() for name in secret.KEYS
            }
        return self._fresh[owner.uid]


def _not_ours(found: Json, owner: Owner, kind: str) -> Children:
    name = found["metadata"]["name"]
    if identity.owner_key(found) == (owner.namespace, owner.name):
        return Children(predecessor=f'{kind} "{name}"')
    return Children(conflict=CONFLICT.format(kind=kind, name=name))


def _surplus(found: Json | None, body: Json) -> bool:
    """Whether the Secret holds a value of ours that it is not to hold any more."""
    return bool(set(secret.values(found)) - set(body["data"]))


def _essence(body: Json) -> Json:
    # Lists of the API server leave the kind out, and the type of a Secret never changes.
    return {key: value for key, value in body.items() if key not in {"apiVersion", "kind", "type"}}
