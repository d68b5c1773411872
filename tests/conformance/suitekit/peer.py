"""JSON-RPC over stdin and stdout, on the standard library: what the fixture servers have in common."""

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from suitekit import fixtures

Json = dict[str, Any]
METHOD_NOT_FOUND, INVALID_PARAMS = -32601, -32602
STEP_SECONDS = 0.05
"""Between two things that a tool reports while it works."""


class RpcError(Exception):
    """Becomes a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.body = {"code": code, "message": message} | ({} if data is None else {"data": data})


class Peer:
    """One connection; each request runs in a thread of its own, by the method's entry in `methods`."""

    def __init__(self, methods: Mapping[str, Callable[[Any, Json], Json | None]]) -> None:
        """`methods`: from id and params to the result, or None when there is none yet."""
        self._lock = threading.Lock()
        self._methods = methods

    def run(self) -> None:
        """Serve until stdin ends."""
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if "method" not in message:
                self.answered(message)
            elif "id" in message:
                threading.Thread(target=self._serve, args=(message,), daemon=True).start()
            else:
                self.notified(message["method"], message.get("params") or {})

    def send(self, **message: Any) -> None:
        """Write one message."""
        line = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()

    def progress_along(self, meta: Json) -> Json:
        """Report progress to a caller that gave a token in `_meta`; gives the result of the tool."""
        for step, progress in enumerate((0, 50, 100)):
            time.sleep(STEP_SECONDS if step else 0)
            if "progressToken" in meta:
                note = {"progressToken": meta["progressToken"], "progress": progress, "total": 100}
                self.send(method="notifications/progress", params=note)
        return fixtures.text("Reported progress three times")

    def answered(self, message: Json) -> None:
        """Take an answer to a request of this side."""

    def notified(self, method: str, params: Json) -> None:
        """Take a notification."""

    def _serve(self, message: Json) -> None:
        method = self._methods.get(message["method"], _unknown)
        try:
            result = method(message["id"], message.get("params") or {})
            if result is not None:
                self.send(id=message["id"], result=result)
        except RpcError as error:
            self.send(id=message["id"], error=error.body)


def _unknown(_number: Any, _params: Json) -> Json:
    raise RpcError(METHOD_NOT_FOUND, "Method not found")
