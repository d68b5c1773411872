"""What tools and prompts of the stateless fixture ask their client for, and what becomes of the answers."""

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from suitekit import fixtures
from suitekit.peer import INVALID_PARAMS, Json, RpcError

_SECRET = secrets.token_bytes(32)
MISSING_CAPABILITY = -32021


def elicitation(message: str, **properties: str) -> Json:
    """A form; `properties`: name -> type."""
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
    }
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sampling(text: str, tokens: int = 100) -> Json:
    """A question for the client's model."""
    messages = [{"role": "user", "content": {"type": "text", "text": text}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": tokens}}


ROOTS: Json = {"method": "roots/list", "params": {}}
_NAME = elicitation("What is your name?", name="string")
_OK = elicitation("Please confirm", ok="boolean")


@dataclass(frozen=True)
class Rounds:
    """Questions to be answered one round after the other; `stated`: each round has a signed state."""

    rounds: tuple[Mapping[str, Json], ...]
    stated: bool = False


TOOLS: dict[str, Rounds] = {
    "test_input_required_result_elicitation": Rounds(({"user_name": _NAME},)),
    "test_input_required_result_sampling": Rounds(
        ({"capital_question": sampling("What is the capital of France?")},)
    ),
    "test_input_required_result_list_roots": Rounds(({"client_roots": ROOTS},)),
    "test_input_required_result_request_state": Rounds(({"confirm": _OK},), stated=True),
    "test_input_required_result_tampered_state": Rounds(({"confirm": _OK},), stated=True),
    "test_input_required_result_multiple_inputs": Rounds(
        ({"user_name": _NAME, "greeting": sampling("Generate a greeting", 50), "client_roots": ROOTS},),
        stated=True,
    ),
    "test_input_required_result_multi_round": Rounds(
        (
            {"step1": elicitation("Step 1: What is your name?", name="string")},
            {"step2": elicitation("Step 2: What is your favorite color?", color="string")},
        ),
        stated=True,
    ),
    "test_input_required_result_capabilities": Rounds(
        ({"user_name": _NAME, "greeting": sampling("Generate a greeting", 50)},)
    ),
    "test_streaming_elicitation": Rounds(({"user_name": _NAME},)),
    "test_missing_capability": Rounds(({"greeting": sampling("Generate a greeting", 50)},)),
}
PROMPTS: dict[str, Rounds] = {
    "test_input_required_result_prompt": Rounds(
        ({"user_context": elicitation("What context should the prompt use?", context="string")},)
    )
}
# These leave out what the client cannot answer; all others need every answer.
_LENIENT = frozenset({"test_input_required_result_capabilities"})


def answered(name: str, asked: Rounds, params: Json, declared: Mapping[str, Any]) -> Json:
    """The client's answers of the last round, or a result that asks for what is missing.

    Gives `{"resultType": "input_required", …}` or `{"answers": …}`.
    """
    number = _round(name, params.get("requestState")) if asked.stated else 0
    questions = {key: question for key, question in asked.rounds[number].items() if _able(question, declared)}
    if len(questions) < len(asked.rounds[number]) and name not in _LENIENT:
        needed: Json = {_capability(question): {} for question in asked.rounds[number].values()}
        missing = {key: value for key, value in needed.items() if key not in declared}
        text = "The client lacks a capability"
        raise RpcError(MISSING_CAPABILITY, text, {"requiredCapabilities": missing})
    given = params.get("inputResponses", {})
    if not isinstance(given, dict):
        raise RpcError(INVALID_PARAMS, "inputResponses is not an object")
    if not all(isinstance(given.get(key), dict) for key in questions):
        return _ask(name, questions, number if asked.stated else None)
    if number + 1 < len(asked.rounds):
        return _ask(name, asked.rounds[number + 1], number + 1)
    return {"answers": {key: given[key] for key in questions}}


def _ask(name: str, questions: Mapping[str, Json], number: int | None) -> Json:
    state = {} if number is None else {"requestState": f"{number}.{_mac(name, number)}"}
    return {"resultType": "input_required", "inputRequests": dict(questions), **state}


def _round(name: str, state: Any) -> int:
    if state is None:
        return 0
    number, _, mac = str(state).partition(".")
    if not number.isdecimal() or not hmac.compare_digest(mac, _mac(name, int(number))):
        raise RpcError(INVALID_PARAMS, "requestState is not what this server gave")
    return int(number)


def _mac(name: str, number: int) -> str:
    return hmac.new(_SECRET, f"{name}/{number}".encode(), hashlib.sha256).hexdigest()


def _capability(question: Json) -> str:
    return str(question["method"]).partition("/")[0]


def _able(question: Json, declared: Mapping[str, Any]) -> bool:
    return _capability(question) in declared


def told(answers: Json) -> Json:
    """A tool's result from the answers."""
    return fixtures.text(f"state-ok: {json.dumps(answers)}")
