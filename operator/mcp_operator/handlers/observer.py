"""Reads everything that one decision needs into an `Observation`, mostly from memory."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pydantic

from mcp_operator.adapters.errors import KubeError
from mcp_operator.adapters.kinds import CONFIG_MAPS, PODS, SECRETS, SERVICES, Kind
from mcp_operator.adapters.kube import Kube
from mcp_operator.core import configuration
from mcp_operator.core import pod as pods
from mcp_operator.core.api import RESTART_ANNOTATION, MCPServerSpec, MCPServerStatus
from mcp_operator.core.naming import Key
from mcp_operator.core.observation import MissingReference, Observation, PodFacts, RelayView, contradicted
from mcp_operator.core.rules import pending
from mcp_operator.handlers.cache import DIGESTS, FAULTS, Cache, uid_of
from mcp_operator.handlers.children import Children, Nursery
from mcp_operator.handlers.doors import Doors
from mcp_operator.handlers.entrypoints import EntryPoints
from mcp_operator.handlers.keysets import KeySets
from mcp_operator.manifests import identity, names, references, service
from mcp_operator.manifests import pod as pod_manifest
from mcp_operator.manifests.identity import Owner
from mcp_operator.manifests.references import SECRET, Digests, Reference
from mcp_operator.settings import Settings
from mcp_relay_api import paths

logger = logging.getLogger(__name__)
Json = dict[str, Any]
_SANDBOX = "FailedCreatePodSandBox"
_MOUNT = "FailedMount"
NO_CHILDREN = Children()


@dataclass(frozen=True)
class Scene:
    """An observation, and what executing a plan about it needs."""

    seen: Observation
    owner: Owner
    template: Json
    children: Children
    server: Json


class Observer:
    """Makes observations."""

    def __init__(
        self,
        kube: Kube,
        cache: Cache,
        nursery: Nursery,
        view: Callable[[Key, str], RelayView],
        settings: Settings,
        clock: Callable[[], datetime],
        doors: Doors,
        entries: EntryPoints,
        key_sets: KeySets,
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._nursery = nursery
        self._view = view
        self._settings = settings
        self._clock = clock
        self._doors = doors
        self._entries = entries
        self._key_sets = key_sets
        self._referring: dict[tuple[str, str, str], set[Key]] = {}
        self._references: dict[Key, tuple[Reference, ...]] = {}

    def referring(self, kind: Kind, key: Key) -> set[Key]:
        """The MCPServers that refer to this Secret or ConfigMap."""
        return self._referring.get((kind.plural, *key), set())

    def forget(self, key: Key, uid: str) -> None:
        """The MCPServer is gone."""
        self._refer(key, ())
        self._doors.shut(key)
        self._entries.forget(key)
        self._key_sets.forget(key)
        self._nursery.forget(uid)

    async def look(self, key: Key, server: Json) -> Scene:
        """Everything about one MCPServer."""
        meta = server["metadata"]
        owner = Owner(meta["name"], meta["namespace"], meta["uid"])
        spec, invalid = _spec(server)
        if invalid or "deletionTimestamp" in meta:
            children = Children()
            return Scene(self._observation(key, server, spec, invalid=invalid), owner, {}, children, server)
        await self._recheck(key, server)
        children = await self._nursery.look(owner, spec)
        found = references.find(spec)
        self._refer(key, found)
        lookup = await self._lookups(owner.namespace, found)
        missing = references.missing(
            found, lambda kind, name: lookup[kind, name], lambda kind, name: self._faults(owner, kind, name)
        )
        restarted = meta.get("annotations", {}).get(RESTART_ANNOTATION, "")
        template = pod_manifest.template(owner, spec, self._settings, restarted)
        seen = self._observation(
            key,
            server,
            spec,
            children=children,
            missing=missing,
            config_hash=_hash(template, found, lookup, children.values),
            config=_parts(spec, restarted, found, lookup, missing, children.values),
            events=await self._silence(key, owner.uid),
        )
        seen = replace(
            seen,
            reachable=self._reachable(key, seen),
            entry=self._entries.view(key, spec),
            keys=self._key_sets.view(key, spec.auth.jwt, seen.relay.status),
        )
        return Scene(seen, owner, template, children, server)

    def _reachable(self, key: Key, seen: Observation) -> bool:
        """Whether the Service leads to the pod; tried only until the status says that clients are served."""
        pod = seen.pod
        if pod is None or pod.deleting or not pod.ready:
            self._doors.shut(key)
            return True
        found = self._cache.get(SERVICES, (key[0], names.service(key[1])))
        address = (found or {}).get("spec", {}).get("clusterIP", "None")
        if seen.served_now or address == "None":
            return True
        return self._doors.is_open(key, pod.uid, (address, service.PORT), (pod.ip or "", paths.MCP_PORT))

    def _observation(
        self,
        key: Key,
        server: Json,
        spec: MCPServerSpec,
        *,
        invalid: str = "",
        children: Children = NO_CHILDREN,
        missing: tuple[MissingReference, ...] = (),
        config_hash: str = "",
        config: Mapping[str, str] | None = None,
        events: dict[str, str] | None = None,
    ) -> Observation:
        meta = server["metadata"]
        known, others = self._pods(key, meta["uid"])
        told = events or {}
        return Observation(
            now=self._clock(),
            name=key[1],
            namespace=key[0],
            generation=meta.get("generation", 0),
            spec=spec,
            status=status_of(server),
            config_hash=config_hash,
            config=config or {},
            deleting="deletionTimestamp" in meta,
            invalid=invalid,
            conflict=children.conflict,
            predecessor=children.predecessor,
            predecessor_epoch=others,
            missing=missing,
            pods=known,
            relay=self._view(key, known[-1].uid) if known else RelayView(),
            sandbox_error=told.get(_SANDBOX, ""),
            mount_error=told.get(_MOUNT, ""),
        )

    def _pods(self, key: Key, uid: str) -> tuple[tuple[PodFacts, ...], int]:
        """The pods of this very MCPServer, and the highest epoch of a deleted one's of the same name."""
        ours, others = [], 0
        for found in self._cache.pods(key):
            facts = pods.facts(found)
            if identity.owned_by(found, uid):
                ours.append(facts)
            else:
                others = max(others, facts.epoch)
        return tuple(sorted(ours, key=lambda pod: pod.epoch)), others

    async def _recheck(self, key: Key, server: Json) -> None:
        """Look up the pod where relay or status contradict the watch, which can miss an end, or lag."""
        doubted = self._doubted(key, server)
        if doubted is None:
            return
        name, uid = doubted
        place = (key[0], name)
        try:
            found = await self._kube.read(PODS, *place)
        except KubeError as error:
            logger.info("%s/%s: its pod cannot be looked up: %s", *key, error)
            return
        if found is None or uid_of(found) != uid:
            cached = self._cache.get(PODS, place)
            gone = {"metadata": {"namespace": key[0], "name": name, "uid": uid}}
            self._cache.remove(PODS, cached if cached is not None and uid_of(cached) == uid else gone)
        if found is not None:
            self._cache.put(PODS, found)

    def _doubted(self, key: Key, server: Json) -> tuple[str, str] | None:
        """Name and UID of the pod that is there or not: nobody knows."""
        known, _ = self._pods(key, uid_of(server))
        if known:
            newest = known[-1]
            return (newest.name, newest.uid) if contradicted(newest, self._view(key, newest.uid)) else None
        told = (server.get("status") or {}).get("session") or {}
        name, uid = told.get("podName"), told.get("podUID")
        # Another operator may have made it a moment ago: two watches know no common order.
        return (name, uid) if name and uid and not self._cache.is_gone(uid) else None

    async def _silence(self, key: Key, uid: str) -> dict[str, str]:
        """What the node says in Events about a pod of which its status says nothing: reason -> message."""
        known, _ = self._pods(key, uid)
        if not known or not pending.silent(known[-1], self._clock().timestamp()):
            return {}
        events = await self._kube.events_about(key[0], known[-1].uid)
        return {str(event.get("reason", "")): str(event.get("note", "")) for event in events}

    def _refer(self, key: Key, found: tuple[Reference, ...]) -> None:
        if self._references.get(key, ()) == found:
            return
        for reference in self._references.pop(key, ()):
            self._referring.get(_place(key, reference), set()).discard(key)
        for reference in found:
            self._referring.setdefault(_place(key, reference), set()).add(key)
        if found:
            self._references[key] = found

    async def _lookups(self, namespace: str, found: tuple[Reference, ...]) -> dict[tuple[str, str], Digests]:
        return {
            (reference.kind, reference.name): await self._digests(reference.kind, (namespace, reference.name))
            for reference in found
        }

    async def _digests(self, kind: str, key: Key) -> Digests:
        where = _kind(kind)
        known = self._cache.get(where, key)
        if known is None:
            # Created a moment ago, perhaps: its event may come after that of the resource that names it.
            found = await self._kube.read(where, *key)
            if found is None:
                return None
            self._cache.put(where, found)
            known = self._cache.get(where, key)
        digests: Digests = known[DIGESTS] if known is not None else None
        return digests

    def _faults(self, owner: Owner, kind: str, name: str) -> dict[str, str]:
        known = self._cache.get(_kind(kind), (owner.namespace, name)) or {}
        faults: dict[str, str] = known.get(FAULTS, {})
        return faults


def status_of(server: Json) -> MCPServerStatus:
    """The status as it was written last; empty where it cannot be read (written by another version)."""
    try:
        return MCPServerStatus.parse(server.get("status"))
    except pydantic.ValidationError as error:
        logger.warning("%s: the status is written anew: %s", uid_of(server), error.errors()[0]["msg"])
        return MCPServerStatus()


def _spec(server: Json) -> tuple[MCPServerSpec, str]:
    try:
        return MCPServerSpec.parse(server.get("spec")), ""
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in ("spec", *first["loc"]))
        return MCPServerSpec(), f"{field}: {first['msg']}"


def _hash(
    template: Json,
    found: tuple[Reference, ...],
    lookup: dict[tuple[str, str], Digests],
    values: dict[str, bytes],
) -> str:
    signing = values.get(paths.SIGNING_KEY_FILE, b"")
    data = references.digest(found, lambda kind, name: lookup[kind, name], values, signing)
    return f"{references.plain_digest(template)}.{data}"


def _parts(
    spec: MCPServerSpec,
    restarted: str,
    found: tuple[Reference, ...],
    lookup: dict[tuple[str, str], Digests],
    missing: tuple[MissingReference, ...],
    values: dict[str, bytes],
) -> dict[str, str]:
    # What only concerns when a pod is made, not what it is, is no part of it.
    wish = spec.model_dump(mode="json", exclude_defaults=True, exclude={"recovery", "suspend"})
    gaps = {(gap.kind, gap.name) for gap in missing}
    signing = values.get(paths.SIGNING_KEY_FILE, b"")
    objects = references.parts(found, lambda kind, name: lookup[kind, name], gaps, signing)
    wished = {
        configuration.SPEC: references.plain_digest(wish),
        configuration.OWN: references.own_digest(values, signing),
    }
    marked = {configuration.RESTART: references.plain_digest(restarted)} if restarted else {}
    return {**objects, **marked, **wished}


def _kind(kind: str) -> Kind:
    return SECRETS if kind == SECRET else CONFIG_MAPS


def _place(key: Key, reference: Reference) -> tuple[str, str, str]:
    return _kind(reference.kind).plural, key[0], reference.name
