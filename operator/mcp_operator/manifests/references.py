"""Which Secrets and ConfigMaps a resource refers to, and the hash that tells whether their data changed."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_operator.core.api import AuthType, MCPServerSpec
from mcp_operator.core.api.remote import HeaderSource, KeySource
from mcp_operator.core.configuration import MAX_OBJECTS, OTHERS, Parts
from mcp_operator.core.observation import MissingReference
from mcp_relay_api import paths

Json = dict[str, Any]
SECRET: Final = "Secret"  # noqa: S105 - a kind, no password
CONFIG_MAP: Final = "ConfigMap"
# Digest of each key's value; None: the object does not exist.
Digests = Mapping[str, str] | None
Lookup = Callable[[str, str], Digests]
# Keys of an object whose values cannot be a bearer token -> why; {}: none, or no such object.
Faults = Callable[[str, str], Mapping[str, str]]
_HASH_LENGTH: Final = 16
_CONTROL: Final = frozenset((*range(32), 127))


@dataclass(frozen=True)
class Reference:
    """One reference; `keys` empty: all keys of the object."""

    kind: str
    name: str
    field: str
    keys: tuple[str, ...] = ()
    optional: bool = False
    token: bool = False
    """Whether the value is the clients' bearer token: the relay follows a change of it by itself."""


def find(spec: MCPServerSpec) -> tuple[Reference, ...]:
    """All references of a spec, in its order."""
    return (
        *_from_auth(spec),
        *_from_remote(spec),
        *_from_env(spec),
        *_from_env_from(spec),
        *_from_volumes(spec),
    )


def missing(
    references: tuple[Reference, ...], lookup: Lookup, faults: Faults
) -> tuple[MissingReference, ...]:
    """What is referred to, needed, and not there or not usable."""
    return tuple(
        gap
        for reference in references
        for gap in (
            *_gaps(reference, lookup(reference.kind, reference.name)),
            *_faults(reference, faults(reference.kind, reference.name)),
        )
    )


def parts(references: tuple[Reference, ...], lookup: Lookup, gaps: set[tuple[str, str]], key: bytes) -> Parts:
    """A digest for each object that is referred to, by kind and name; "" for those in `gaps`."""
    chosen: dict[tuple[str, str], list[Any]] = {}
    for item in _fixed(references):
        chosen.setdefault((item.kind, item.name), []).append(_chosen(item, lookup(item.kind, item.name)))
    names = sorted(chosen)
    named = {f'{kind} "{name}"': [chosen[kind, name]] for kind, name in names[:MAX_OBJECTS]}
    if len(names) > MAX_OBJECTS:
        named[OTHERS] = [chosen[place] for place in names[MAX_OBJECTS:]]
    absent = {f'{kind} "{name}"' for kind, name in gaps}
    return {name: "" if name in absent else _keyed(value, key) for name, value in named.items()}


def digest(references: tuple[Reference, ...], lookup: Lookup, own: Mapping[str, bytes], key: bytes) -> str:
    """Hash of all values referred to and of the own Secret, keyed so that no value can be guessed from it."""
    seen = [
        [item.kind, item.name, _chosen(item, lookup(item.kind, item.name))] for item in _fixed(references)
    ]
    return _keyed([seen, _mine(own)], key)


def own_digest(own: Mapping[str, bytes], key: bytes) -> str:
    """Hash of the own Secret, keyed as the others are."""
    return _keyed(_mine(own), key)


def _mine(own: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(value).hexdigest() for name, value in own.items()}


def _fixed(references: tuple[Reference, ...]) -> Iterator[Reference]:
    """What a pod has for as long as it lives."""
    return (item for item in references if not item.token)


def plain_digest(value: Any) -> str:
    """Hash of something that is no secret, as JSON: a pod template, a spec."""
    return hashlib.sha256(_canonical(value)).hexdigest()[:_HASH_LENGTH]


def data_digests(found: Json) -> dict[str, str]:
    """Digest of each value of a Secret or ConfigMap; of nothing else in it."""
    parts = {**(found.get("data") or {}), **(found.get("binaryData") or {})}
    return {
        key: hashlib.sha256(str(value).encode()).hexdigest()[:_HASH_LENGTH] for key, value in parts.items()
    }


def token_faults(secret: Json) -> dict[str, str]:
    """Keys of a Secret whose values can be no bearer token, and why."""
    found = {key: _token_fault(str(value)) for key, value in (secret.get("data") or {}).items()}
    return {key: fault for key, fault in found.items() if fault}


def _token_fault(encoded: str) -> str:
    tokens = [line.strip() for line in base64.b64decode(encoded).splitlines() if line.strip()]
    if not tokens:
        return "is empty"
    if len(tokens) > paths.MAX_TOKENS:
        return f"has more than {paths.MAX_TOKENS} lines"
    return "has control characters" if any(byte in _CONTROL for token in tokens for byte in token) else ""


def _keyed(value: Any, key: bytes) -> str:
    return hmac.new(key, _canonical(value), hashlib.sha256).hexdigest()[:_HASH_LENGTH]


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _chosen(reference: Reference, found: Digests) -> Any:
    if found is None:
        return None
    return {key: found.get(key) for key in reference.keys} if reference.keys else dict(found)


def _gaps(reference: Reference, found: Digests) -> Iterator[MissingReference]:
    if reference.optional:
        return
    if found is None:
        yield MissingReference(reference.kind, reference.name, reference.field)
        return
    for key in reference.keys:
        if key not in found:
            yield MissingReference(reference.kind, reference.name, reference.field, key)


def _faults(reference: Reference, found: Mapping[str, str]) -> Iterator[MissingReference]:
    for key in reference.keys if reference.token else ():
        if key in found:
            yield MissingReference(reference.kind, reference.name, reference.field, key, found[key])


def _from_auth(spec: MCPServerSpec) -> Iterator[Reference]:
    if spec.auth.type is AuthType.BEARER and spec.auth.bearer is not None:
        reference = spec.auth.bearer.secret_ref
        field = "spec.auth.bearer.secretRef"
        yield Reference(SECRET, reference.name, field, (reference.key,), token=True)


def _from_remote(spec: MCPServerSpec) -> Iterator[Reference]:
    if spec.remote is None:
        return
    named: list[tuple[str, HeaderSource | KeySource]] = [
        (f"spec.remote.headersFrom[{index}]", header) for index, header in enumerate(spec.remote.headers_from)
    ]
    if spec.remote.ca_bundle_from is not None:
        named.append(("spec.remote.caBundleFrom", spec.remote.ca_bundle_from))
    for field, source in named:
        for kind, part, reference in (
            (SECRET, "secretKeyRef", source.secret_key_ref),
            (CONFIG_MAP, "configMapKeyRef", source.config_map_key_ref),
        ):
            if reference is not None:
                yield Reference(kind, reference.name, f"{field}.{part}", (reference.key,))


def _from_env(spec: MCPServerSpec) -> Iterator[Reference]:
    for index, variable in enumerate(spec.env):
        source = variable.get("valueFrom") or {}
        for kind, field in ((SECRET, "secretKeyRef"), (CONFIG_MAP, "configMapKeyRef")):
            named = source.get(field)
            if named:
                keys = (str(named.get("key")),)
                yield _reference(kind, named, f"spec.env[{index}].valueFrom.{field}", keys)


def _from_env_from(spec: MCPServerSpec) -> Iterator[Reference]:
    for index, source in enumerate(spec.env_from):
        for kind, field in ((SECRET, "secretRef"), (CONFIG_MAP, "configMapRef")):
            if source.get(field):
                yield _reference(kind, source[field], f"spec.envFrom[{index}].{field}")


def _from_volumes(spec: MCPServerSpec) -> Iterator[Reference]:
    for index, volume in enumerate(spec.volumes):
        field = f"spec.volumes[{index}]"
        yield from _from_source(volume, field)
        for number, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            yield from _from_source(source, f"{field}.projected.sources[{number}]")


def _from_source(source: Json, field: str) -> Iterator[Reference]:
    for kind, part in ((SECRET, "secret"), (CONFIG_MAP, "configMap")):
        named = source.get(part)
        if named:
            keys = tuple(str(item.get("key")) for item in named.get("items") or ())
            yield _reference(kind, named, f"{field}.{part}", keys)


def _reference(kind: str, named: Json, field: str, keys: tuple[str, ...] = ()) -> Reference:
    name = str(named.get("name") or named.get("secretName") or "")
    return Reference(kind, name, field, keys, bool(named.get("optional")))
