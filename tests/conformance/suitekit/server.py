"""The stdio MCP server that the official conformance suite expects, on the standard library.

Speaks the revisions with a handshake (2024-11-05 to 2025-11-25). Names, texts and schemas are the suite's. It
asks only for what the client declared, as a server on an SDK would.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from suitekit import fixtures
from suitekit.peer import INVALID_PARAMS, METHOD_NOT_FOUND, STEP_SECONDS, Json, Peer, RpcError

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
ASK_SECONDS = 20.0


class Server(Peer):
    """The server."""

    def __init__(self) -> None:
        self._answers: dict[int, Json] = {}
        self._answered = threading.Condition()
        self._asked = 0
        self._declared: Mapping[str, Any] = {}
        self._subscribed: set[str] = set()
        methods: dict[str, Callable[[Json], Json]] = {
            "initialize": self._initialize,
            "ping": lambda _params: {},
            "logging/setLevel": lambda _params: {},
            "completion/complete": lambda _params: {"completion": fixtures.COMPLETION},
            "tools/list": lambda _params: {"tools": fixtures.TOOLS},
            "tools/call": self._call,
            "resources/list": lambda _params: {"resources": fixtures.RESOURCES},
            "resources/templates/list": lambda _params: {"resourceTemplates": fixtures.TEMPLATES},
            "resources/read": self._read,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "prompts/list": lambda _params: {"prompts": fixtures.PROMPTS},
            "prompts/get": self._prompt,
        }
        super().__init__({name: _without_id(method) for name, method in methods.items()})

    def answered(self, message: Json) -> None:
        """Take an answer of the client."""
        with self._answered:
            self._answers[message["id"]] = message
            self._answered.notify_all()

    def _initialize(self, params: Json) -> Json:
        self._declared = params["capabilities"]
        asked = params["protocolVersion"]
        return {
            "protocolVersion": asked if asked in REVISIONS else REVISIONS[-1],
            "capabilities": fixtures.CAPABILITIES,
            "serverInfo": fixtures.SERVER_INFO,
        }

    def _ask(self, method: str, params: Json) -> Json:
        """The client's result; only what it declared is asked for."""
        capability = method.partition("/")[0]
        if capability not in self._declared:
            raise RpcError(METHOD_NOT_FOUND, f"The client does not offer {capability}")
        with self._answered:
            self._asked += 1
            number = self._asked
            self.send(id=number, method=method, params=params)
            if not self._answered.wait_for(lambda: number in self._answers, ASK_SECONDS):
                raise RpcError(METHOD_NOT_FOUND, f"The client did not answer {method}")
            answer = self._answers.pop(number)
        if "result" not in answer:
            raise RpcError(METHOD_NOT_FOUND, f"The client refused {method}: {answer['error']['message']}")
        return dict(answer["result"])

    # Tools.

    def _call(self, params: Json) -> Json:
        name, arguments = params.get("name"), params.get("arguments") or {}
        if name in fixtures.TOOL_RESULTS:
            return fixtures.TOOL_RESULTS[name]
        if name in fixtures.ELICITATIONS:
            return self._elicit(fixtures.ELICITATIONS[name], arguments)
        special: dict[str, Callable[[], Json]] = {
            "test_tool_with_logging": self._log_along,
            "test_tool_with_progress": lambda: self.progress_along(params.get("_meta") or {}),
            "test_sampling": lambda: self._sample(arguments),
        }
        if name not in special:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {name}")
        return special[name]()

    def _log_along(self) -> Json:
        for step, text in enumerate(fixtures.LOG_TEXTS):
            time.sleep(STEP_SECONDS if step else 0)
            self.send(method="notifications/message", params={"level": "info", "data": text})
        return fixtures.text("Logged three messages")

    def _sample(self, arguments: Json) -> Json:
        content = {"type": "text", "text": arguments.get("prompt", "")}
        question = {"messages": [{"role": "user", "content": content}], "maxTokens": 100}
        answer = self._ask("sampling/createMessage", question)
        return fixtures.text(f"LLM response: {answer['content']['text']}")

    def _elicit(self, question: Json, arguments: Json) -> Json:
        message = arguments.get("message", question["message"])
        answer = self._ask("elicitation/create", {**question, "message": message})
        content = json.dumps(answer.get("content"))
        return fixtures.text(f"Elicitation completed: action={answer['action']}, content={content}")

    # Resources and prompts.

    def _read(self, params: Json) -> Json:
        contents = fixtures.resource(str(params.get("uri")))
        if contents is None:
            raise RpcError(INVALID_PARAMS, "Resource not found", {"uri": params.get("uri")})
        return {"contents": [contents]}

    def _subscribe(self, params: Json) -> Json:
        self._subscribed.add(params["uri"])
        return {}

    def _unsubscribe(self, params: Json) -> Json:
        self._subscribed.discard(params["uri"])
        return {}

    def _prompt(self, params: Json) -> Json:
        contents = fixtures.prompt(str(params.get("name")), params.get("arguments") or {})
        if contents is None:
            raise RpcError(INVALID_PARAMS, f"Unknown prompt: {params.get('name')}")
        return {"messages": [{"role": "user", "content": content} for content in contents]}


def _without_id(method: Callable[[Json], Json]) -> Callable[[Any, Json], Json]:
    return lambda _number, params: method(params)


if __name__ == "__main__":
    Server().run()
