"""Asks registries what images start, for servers whose spec leaves the command to the image."""

import asyncio
import base64
import binascii
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from mcp_operator.adapters.errors import KubeError, RegistryError
from mcp_operator.adapters.kinds import SECRETS
from mcp_operator.adapters.kube import Kube
from mcp_operator.adapters.registry import Registries
from mcp_operator.core.api import MCPServerSpec
from mcp_operator.core.naming import Key
from mcp_operator.core.observation import EntryPointView
from mcp_operator.core.oci import credentials, reference
from mcp_operator.core.oci.image import EntryPoint
from mcp_operator.core.oci.reference import ImageNameError
from mcp_operator.handlers import tasks

logger = logging.getLogger(__name__)
# A tag may move; while an answer is this young a crashed server does not wait for the registry again.
FRESH: Final = timedelta(minutes=5)
FIRST_SECONDS: Final = 5
LAST_SECONDS: Final = 300
_CREDENTIALS: Final = "name a Secret that may pull it in spec.imagePullSecrets"


@dataclass
class _Lookup:
    question: tuple[Any, ...]
    found: EntryPoint | None = None
    fresh_until: datetime | None = None
    problem: str = ""
    passing: bool = False
    failures: int = 0
    again: datetime | None = None
    task: asyncio.Task[None] | None = None


class EntryPoints:
    """What is known of the images of servers, by server."""

    def __init__(
        self, kube: Kube, registries: Registries, wake: Callable[[Key], None], clock: Callable[[], datetime]
    ) -> None:
        self._kube = kube
        self._registries = registries
        self._wake = wake
        self._clock = clock
        self._lookups: dict[Key, _Lookup] = {}

    def view(self, key: Key, spec: MCPServerSpec) -> EntryPointView | None:
        """What is known now; None: the spec has a command, or nothing is run."""
        if spec.command or spec.remote is not None:
            self.forget(key)
            return None
        lookup = self._lookup(key, spec)
        asked = lookup.task is not None
        if lookup.problem:
            return EntryPointView(
                problem=lookup.problem, passing=lookup.passing, again=lookup.again, asked=asked
            )
        fresh = lookup.fresh_until is not None and self._clock() < lookup.fresh_until
        if lookup.found is None or not fresh:
            return EntryPointView(asked=asked)
        return EntryPointView(lookup.found.before(spec.args))

    def ask(self, key: Key, spec: MCPServerSpec) -> None:
        """Begin to ask, unless an answer is on its way already; the server is woken with it."""
        lookup = self._lookup(key, spec)
        if lookup.task is None:
            lookup.task = tasks.start(
                f"the lookup of the image of {key[0]}/{key[1]}",
                self._ask(key, lookup, spec),
                lambda: self._failed(key, lookup, "a defect of the operator; see its log", passing=True),
            )

    def forget(self, key: Key) -> None:
        """Drop what is known."""
        lookup = self._lookups.pop(key, None)
        if lookup is not None and lookup.task is not None:
            lookup.task.cancel()

    async def close(self) -> None:
        """End all lookups. Idempotent."""
        running = [lookup.task for lookup in self._lookups.values() if lookup.task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._lookups.clear()

    def _lookup(self, key: Key, spec: MCPServerSpec) -> _Lookup:
        question = (spec.image, tuple(str(item.get("name")) for item in spec.image_pull_secrets))
        known = self._lookups.get(key)
        if known is None or known.question != question:
            self.forget(key)
            known = self._lookups[key] = _Lookup(question)
        return known

    async def _ask(self, key: Key, lookup: _Lookup, spec: MCPServerSpec) -> None:
        try:
            image = reference.parse(spec.image or "")
            pulled_with = credentials.find(
                [await self._secret(key[0], name) for name in lookup.question[1]], image
            )
            found = await self._registries.entry_point(image, pulled_with)
        except ImageNameError as error:
            self._failed(key, lookup, f"spec.image: {error}", passing=False)
        except RegistryError as error:
            text = f"the registry of {spec.image}: {error}" + (f": {_CREDENTIALS}" if error.denied else "")
            self._failed(key, lookup, text, passing=error.passing)
        except KubeError as error:
            self._failed(key, lookup, f"the pull Secret cannot be read: {error}", passing=True)
        else:
            self._answered(key, lookup, found, spec)

    def _answered(self, key: Key, lookup: _Lookup, found: EntryPoint, spec: MCPServerSpec) -> None:
        if not (*found.before(spec.args), *spec.args):
            self._failed(key, lookup, f"{spec.image} has neither ENTRYPOINT nor CMD", passing=False)
            return
        lookup.found, lookup.fresh_until = found, self._clock() + FRESH
        lookup.problem, lookup.failures, lookup.again, lookup.task = "", 0, None, None
        self._wake(key)

    def _failed(self, key: Key, lookup: _Lookup, problem: str, *, passing: bool) -> None:
        now, lookup.task = self._clock(), None
        if lookup.found is not None and passing:
            # The node may have the image: a registry that is away must not keep a known server from starting.
            logger.warning("%s/%s: %s; what it said before is used", *key, problem)
            lookup.fresh_until = now + FRESH
        else:
            lookup.problem, lookup.passing = problem, passing
            lookup.failures += 1
            seconds = min(FIRST_SECONDS * 2 ** min(lookup.failures - 1, 10), LAST_SECONDS)
            lookup.again = now + timedelta(seconds=seconds)
        self._wake(key)

    async def _secret(self, namespace: str, name: str) -> Mapping[str, bytes]:
        """The data of a Secret; nothing for one that does not exist, as the kubelet sees it."""
        found = await self._kube.read(SECRETS, namespace, name)
        return {key: _decoded(value) for key, value in ((found or {}).get("data") or {}).items()}


def _decoded(value: str) -> bytes:
    try:
        return base64.b64decode(value)
    except (binascii.Error, ValueError):
        return b""
