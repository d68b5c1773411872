"""The stdio MCP server that the suite expects of revision 2026-07-28, on the standard library.

No handshake and no sessions: every request carries its envelope. Names, texts and schemas are the suite's.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from suitekit import fixtures, rounds
from suitekit.peer import INVALID_PARAMS, STEP_SECONDS, Json, Peer, RpcError

REVISION = "2026-07-28"
_PREFIX = "io.modelcontextprotocol/"
UNSUPPORTED_VERSION = -32022
_FRESH: Json = {"ttlMs": 0, "cacheScope": "public"}
_CHANGES = {
    "test_trigger_tool_change": ("toolsListChanged", "notifications/tools/list_changed"),
    "test_trigger_prompt_change": ("promptsListChanged", "notifications/prompts/list_changed"),
}
_REGION = {"type": "string", "description": "Where to run", "x-mcp-header": "Region"}
_HEADER_TOOL = {
    "name": "test_header_param",
    "description": "Fixture of the conformance suite: test_header_param",
    "inputSchema": {"type": "object", "properties": {"region": _REGION}},
}
_MORE = (*rounds.TOOLS, *_CHANGES, "test_logging_tool")
TOOLS: list[Json] = [
    *fixtures.TOOLS,
    _HEADER_TOOL,
    *({"name": name, "description": f"Fixture: {name}", "inputSchema": {"type": "object"}} for name in _MORE),
]
PROMPTS: list[Json] = [
    *fixtures.PROMPTS,
    *({"name": name, "description": f"Fixture: {name}"} for name in rounds.PROMPTS),
]


class StatelessServer(Peer):
    """The server."""

    def __init__(self) -> None:
        self._subscriptions: dict[Any, Json] = {}
        self._guard = threading.Lock()
        plain: dict[str, Callable[[Json], Json]] = {
            "server/discover": self._discover,
            "completion/complete": lambda _params: {"completion": fixtures.COMPLETION},
            "tools/list": lambda _params: {"tools": TOOLS, **_FRESH},
            "tools/call": self._call,
            "resources/list": lambda _params: {"resources": fixtures.RESOURCES, **_FRESH},
            "resources/templates/list": lambda _params: {"resourceTemplates": fixtures.TEMPLATES, **_FRESH},
            "resources/read": self._read,
            "prompts/list": lambda _params: {"prompts": PROMPTS, **_FRESH},
            "prompts/get": self._prompt,
        }
        methods = {name: _enveloped(method) for name, method in plain.items()}
        super().__init__({**methods, "subscriptions/listen": self._listen})

    def notified(self, method: str, params: Json) -> None:
        """Take a cancellation."""
        if method == "notifications/cancelled":
            with self._guard:
                self._subscriptions.pop(params.get("requestId"), None)

    def _discover(self, _params: Json) -> Json:
        return {"supportedVersions": [REVISION], "capabilities": fixtures.CAPABILITIES, **_FRESH}

    # Subscriptions.

    def _listen(self, number: Any, params: Json) -> None:
        _check(params)
        asked = params.get("notifications") or {}
        with self._guard:  # a change that follows the acknowledgement finds the subscription
            self._tell(number, "notifications/subscriptions/acknowledged", {"notifications": asked})
            self._subscriptions[number] = asked

    def _tell(self, number: Any, method: str, params: Json) -> None:
        self.send(method=method, params={"_meta": {_PREFIX + "subscriptionId": number}, **params})

    def _change(self, name: str) -> Json:
        field, method = _CHANGES[name]
        with self._guard:
            concerned = [number for number, asked in self._subscriptions.items() if asked.get(field)]
        for number in concerned:
            self._tell(number, method, {})
        return fixtures.text("Changed")

    # Tools.

    def _call(self, params: Json) -> Json:
        name, arguments = str(params.get("name")), params.get("arguments") or {}
        if name in fixtures.TOOL_RESULTS:
            return fixtures.TOOL_RESULTS[name]
        if name in _CHANGES:
            return self._change(name)
        asked = rounds.TOOLS.get(name) or _asked(name, arguments)
        if asked is not None:
            result = rounds.answered(name, asked, params, _meta(params, "clientCapabilities"))
            return _concluded(name, result["answers"]) if "answers" in result else result
        special: dict[str, Callable[[], Json]] = {
            "test_tool_with_logging": lambda: self._log_along(params),
            "test_logging_tool": lambda: self._log_along(params),
            "test_tool_with_progress": lambda: self.progress_along(params["_meta"]),
            "test_header_param": lambda: fixtures.text(f"Ran in {arguments.get('region')}"),
        }
        if name not in special:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {name}")
        return special[name]()

    def _log_along(self, params: Json) -> Json:
        for step, text in enumerate(fixtures.LOG_TEXTS):
            time.sleep(STEP_SECONDS if step else 0)
            if _meta(params, "logLevel") in ("debug", "info"):
                self.send(method="notifications/message", params={"level": "info", "data": text})
        return fixtures.text("Logged three messages")

    # Resources and prompts.

    def _read(self, params: Json) -> Json:
        contents = fixtures.resource(str(params.get("uri")))
        if contents is None:
            raise RpcError(INVALID_PARAMS, "Resource not found", {"uri": params.get("uri")})
        return {"contents": [contents], **_FRESH}

    def _prompt(self, params: Json) -> Json:
        name = str(params.get("name"))
        asked = rounds.PROMPTS.get(name)
        if asked is not None:
            result = rounds.answered(name, asked, params, _meta(params, "clientCapabilities"))
            if "answers" not in result:
                return result
            text = {"type": "text", "text": json.dumps(result["answers"])}
            return {"messages": [{"role": "user", "content": text}]}
        contents = fixtures.prompt(name, params.get("arguments") or {})
        if contents is None:
            raise RpcError(INVALID_PARAMS, f"Unknown prompt: {name}")
        return {"messages": [{"role": "user", "content": content} for content in contents]}


def _asked(name: str, arguments: Json) -> rounds.Rounds | None:
    """The one question of a tool that the fixture with sessions has, too."""
    if name == "test_sampling":
        return rounds.Rounds(({"question": rounds.sampling(arguments.get("prompt", ""))},))
    if name not in fixtures.ELICITATIONS:
        return None
    question = fixtures.ELICITATIONS[name]
    form = {**question, "message": arguments.get("message", question["message"])}
    return rounds.Rounds(({"question": {"method": "elicitation/create", "params": form}},))


def _concluded(name: str, answers: Json) -> Json:
    if name == "test_sampling":
        return fixtures.text(f"LLM response: {answers['question']['content']['text']}")
    if name in fixtures.ELICITATIONS:
        given = answers["question"]
        content = json.dumps(given.get("content"))
        return fixtures.text(f"Elicitation completed: action={given['action']}, content={content}")
    return rounds.told(answers)


def _meta(params: Json, key: str) -> Any:
    return (params.get("_meta") or {}).get(_PREFIX + key)


def _check(params: Json) -> None:
    if not isinstance(_meta(params, "clientCapabilities"), Mapping):
        raise RpcError(INVALID_PARAMS, "The envelope is missing")
    asked = _meta(params, "protocolVersion")
    if asked != REVISION:
        data = {"supported": [REVISION], "requested": asked}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def _enveloped(method: Callable[[Json], Json]) -> Callable[[Any, Json], Json]:
    def serve(_number: Any, params: Json) -> Json:
        _check(params)
        result = method(params)
        meta = {_PREFIX + "serverInfo": fixtures.SERVER_INFO}
        return {"resultType": "complete", "_meta": meta, **result}

    return serve


if __name__ == "__main__":
    StatelessServer().run()
