"""The tool list for the status: read page by page, renewed when the server says that it changed.

It is information: a server whose list cannot be read is served all the same, and asked again later.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from mcp_relay_api import paths
from mcp_sidecar import log
from mcp_sidecar.core import document, frames, texts
from mcp_sidecar.core.document import MAX_MESSAGE, Problem, Tools, cut
from mcp_sidecar.core.modern import headers
from mcp_sidecar.core.pace import Pace
from mcp_sidecar.session.masker import Masker
from mcp_sidecar.session.shared import Shared

PAGE_SECONDS = 30.0
MAX_PAGES = 1000
MAX_LISTED = 10_000
MAX_LIST_BYTES = 32 * 1024 * 1024

Publish = Callable[[Tools | None, Problem | None], None]
"""Takes what was read, None for nothing, and what was wrong with it."""


class ListFailedError(Exception):
    """The server did not give its list."""


class Listing:
    """Reads the list in one task at a time; requests that come meanwhile cause one more reading."""

    def __init__(self, shared: Shared, masker: Masker, publish: Publish) -> None:
        self._shared = shared
        self._masker = masker
        self._publish = publish
        self._task: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()
        self._pace = Pace()
        self._loop = asyncio.get_running_loop()

    def refresh(self) -> None:
        """Read the list, now or once more after the reading that is under way."""
        self._wanted.set()
        if self._task is None or self._task.done():
            self._task = self._loop.create_task(self._run())

    def lost(self) -> None:
        """The connection broke, and what was asked for may be lost with it: the next `refresh` asks anew."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def stop(self) -> None:
        """The session is gone."""
        self.lost()
        self._pace = Pace()

    async def _run(self) -> None:
        while self._wanted.is_set():
            await asyncio.sleep(self._pace.wait(self._loop.time()))
            self._wanted.clear()
            self._pace.began(self._loop.time())
            again = self._pace.ended(failed=not await self._renew())
            if again is not None:
                await self._retry(again)

    async def _retry(self, seconds: float) -> None:
        """Wait, but not longer than until the server speaks of a change."""
        timer = self._loop.call_later(seconds, self._wanted.set)
        try:
            await self._wanted.wait()
        finally:
            timer.cancel()

    async def _renew(self) -> bool:
        """Read and publish; whether the whole list was read."""
        found = document.ToolList()
        repeated: dict[str, tuple[headers.Param, ...]] = {}
        names: set[str] = set()
        try:
            whole = await self._read(found, repeated, names)
        except ListFailedError as error:
            masked = await self._masker.masked([cut(str(error), MAX_MESSAGE)])
            text = masked[0] if masked else f"The tools could not be listed {texts.WITHHELD}"
            log.event("tools_list_failed", logging.WARNING, error=text)
            self._publish(None, Problem("ListTools", "ListToolsFailed", text))
            return False
        self._shared.tool_params = repeated
        problem = self._overrides_problem(names)
        if not whole:
            text = f"Only the first {found.count} tools were read for the status: the list is too long"
            log.event("tools_list_truncated", logging.WARNING, tools=found.count)
            problem = Problem("ListTools", "ToolListTruncated", text)
        self._publish(await self._masked(found.tools()), problem)
        return True

    def _overrides_problem(self, names: set[str]) -> Problem | None:
        text = None if self._shared.tools is None else self._shared.tools.complaint(names)
        if text is None:
            return None
        log.event("tool_overrides_unmatched", logging.WARNING, error=text)
        return Problem("ListTools", paths.REASON_OVERRIDES, text)

    async def _masked(self, tools: Tools) -> Tools:
        masked = await self._masker.masked(texts.taken(tools.shown))
        shown = texts.put_back(tools.shown, masked) if masked is not None else ()
        return Tools(tools.count, tools.digest, tuple(shown))

    async def _read(
        self, found: document.ToolList, repeated: dict[str, tuple[headers.Param, ...]], names: set[str]
    ) -> bool:
        """Read page by page; whether that was all. `names` gets the server's names of visible tools."""
        params: dict[str, Any] = {}
        for _ in range(MAX_PAGES):
            message = await self._ask(params)
            result = message.get("result")
            page = result.get("tools") if isinstance(result, dict) else None
            if not isinstance(page, list) or not isinstance(result, dict):
                raise ListFailedError("The server's answer to tools/list has no list of tools")
            if self._shared.tools is not None:
                page = self._shared.tools.visible(page)
                names.update(tool["name"] for tool in page)
                page = self._shared.tools.listed(page)
            room = MAX_LISTED - found.count
            found.add(page[:room])
            repeated.update(headers.tool_params(page[:room]))
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str) or cursor == params.get("cursor"):
                return len(page) <= room
            if found.count >= MAX_LISTED or found.size >= MAX_LIST_BYTES:
                return False
            params = {"cursor": cursor}
        return False

    async def _ask(self, params: dict[str, Any]) -> dict[str, Any]:
        answer: asyncio.Future[dict[str, Any] | None] = self._loop.create_future()
        number = self._shared.table.number()
        self._shared.table.add_own(
            number, lambda message: None if answer.done() else answer.set_result(message)
        )
        self._shared.send(self._shared.asking(number, "tools/list", params))
        try:
            # Not wait_for: an answer that comes as the task is stopped would have it go on.
            async with asyncio.timeout(PAGE_SECONDS):
                message = await answer
        except TimeoutError as error:
            raise ListFailedError(
                f"The server did not answer tools/list within {PAGE_SECONDS:g} seconds"
            ) from error
        finally:
            self._shared.table.take_own(number)
        return _usable(message)


def _usable(message: dict[str, Any] | None) -> dict[str, Any]:
    if message is None:
        raise ListFailedError("The session ended")
    if "unusable" in message:
        raise ListFailedError(f"The answer to tools/list cannot be used: {message['unusable']}")
    problem = message.get("error")
    if isinstance(problem, dict) and problem.get("code") == frames.METHOD_NOT_FOUND:
        return {"result": {"tools": []}}  # declared, but not offered: no tools, and no error
    if problem is not None:
        raise ListFailedError(f"The server refused tools/list: {problem}")
    return message
