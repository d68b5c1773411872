"""The tool list for the status: read page by page, renewed when the server says that it changed."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from mcp_sidecar import log
from mcp_sidecar.core import document, frames
from mcp_sidecar.core.modern import headers
from mcp_sidecar.session.shared import Shared

PAGE_SECONDS = 30.0
SETTLE_SECONDS = 0.1
MAX_PAGES = 1000


class ListFailedError(Exception):
    """The server did not give its list."""


class Listing:
    """Reads the list in one task at a time; requests that come meanwhile cause one more reading."""

    def __init__(self, shared: Shared, publish: Callable[[document.Tools | None, str | None], None]) -> None:
        self._shared = shared
        self._publish = publish
        self._task: asyncio.Task[None] | None = None
        self._again = False

    def refresh(self) -> None:
        """Read the list, now or once more after the reading that is under way."""
        self._again = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """The session is gone."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        while self._again:
            self._again = False
            try:
                tools = await self._read()
                self._shared.tool_params = headers.tool_params(tools)
                self._publish(document.tools(tools), None)
            except ListFailedError as error:
                log.event("tools_list_failed", logging.WARNING, error=str(error))
                self._publish(None, str(error))
            await asyncio.sleep(
                SETTLE_SECONDS
            )  # a burst of notifications becomes one more reading, not fifty

    async def _read(self) -> list[Any]:
        tools: list[Any] = []
        params: dict[str, Any] = {}
        for _ in range(MAX_PAGES):
            message = await self._ask(params)
            result = message.get("result")
            page = result.get("tools") if isinstance(result, dict) else None
            if not isinstance(page, list) or not isinstance(result, dict):
                raise ListFailedError("The server's answer to tools/list has no list of tools")
            tools += page
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str) or cursor == params.get("cursor"):
                break
            params = {"cursor": cursor}
        return tools

    async def _ask(self, params: dict[str, Any]) -> dict[str, Any]:
        answer: asyncio.Future[dict[str, Any] | None] = asyncio.get_running_loop().create_future()
        number = self._shared.table.number()
        self._shared.table.add_own(
            number, lambda message: None if answer.done() else answer.set_result(message)
        )
        self._shared.send(self._shared.asking(number, "tools/list", params))
        try:
            message = await asyncio.wait_for(answer, PAGE_SECONDS)
        except TimeoutError as error:
            raise ListFailedError(
                f"The server did not answer tools/list within {PAGE_SECONDS:g} seconds"
            ) from error
        finally:
            self._shared.table.take_own(number)
        if message is None:
            raise ListFailedError("The session ended")
        problem = message.get("error")
        if isinstance(problem, dict) and problem.get("code") == frames.METHOD_NOT_FOUND:
            return {"result": {"tools": []}}  # declared, but not offered: no tools, and no error
        if problem is not None:
            raise ListFailedError(f"The server refused tools/list: {problem}")
        return message
