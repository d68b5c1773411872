"""Asks the launcher to hide the server's secrets in texts; the relay itself never learns what they are."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_sidecar import log
from mcp_sidecar.core import jsontext, texts

PATIENCE_SECONDS = 2.0
_BATCH_BYTES = 32 * 1024
Then = Callable[[list[str] | None], None]
"""Takes the masked texts in order; None when they could not be masked: they must not be shown."""


@dataclass(slots=True)
class _Question:
    texts: list[str]
    done: int
    then: Then
    timer: asyncio.TimerHandle


class Masker:
    """Questions to the launcher; `control` sends it one message and gives False when it cannot."""

    def __init__(self, control: Callable[[dict[str, Any]], bool]) -> None:
        self._control = control
        self._questions: dict[int, _Question] = {}
        self._number = 0
        self._loop = asyncio.get_running_loop()

    def ask(self, texts: Sequence[str], then: Then) -> None:
        """Have `then` called with the masked texts, soon, or with None."""
        if not texts:
            then([])
            return
        self._number += 1
        timer = self._loop.call_later(PATIENCE_SECONDS, self._give_up, self._number)
        self._questions[self._number] = _Question(list(texts), 0, then, timer)
        self._send(self._number)

    async def masked(self, texts: Sequence[str]) -> list[str] | None:
        """The masked texts, or None."""
        answer: asyncio.Future[list[str] | None] = self._loop.create_future()
        self.ask(texts, lambda found: None if answer.done() else answer.set_result(found))
        return await answer

    def _send(self, number: int) -> None:
        """Send the next few texts of a question: a control message has a limit."""
        question = self._questions[number]
        batch: list[str] = []
        size = 0
        for text in question.texts[question.done :]:
            size += len(jsontext.dumps(text)) + 1
            if batch and size > _BATCH_BYTES:
                break
            batch.append(text)
        if not self._control({"event": "mask", "id": number, "texts": batch}):
            self._loop.call_soon(self._give_up, number)

    def answered(self, message: dict[str, Any]) -> None:
        """Take the launcher's answer."""
        number, texts = message.get("id"), message.get("texts")
        question = self._questions.get(number) if isinstance(number, int) else None
        if number is None or question is None:
            return
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts) or not texts:
            self._give_up(number)
            return
        end = question.done + len(texts)
        question.texts[question.done : end] = texts
        question.done = end
        if end < len(question.texts):
            self._send(number)
        else:
            self._finish(number, question.texts if end == len(question.texts) else None)

    def lost(self) -> None:
        """The connection broke: nothing that was asked will be answered."""
        for number in list(self._questions):
            self._give_up(number)

    def _give_up(self, number: int) -> None:
        if number in self._questions:
            self._finish(number, None)

    def _finish(self, number: int, texts: list[str] | None) -> None:
        question = self._questions.pop(number)
        question.timer.cancel()
        question.then(texts)


def log_noise(masked: list[str] | None) -> None:
    """Log a line of the server that is no message, in words that may be shown."""
    log.event("stdout_noise", logging.WARNING, line=masked[0] if masked else texts.WITHHELD)
