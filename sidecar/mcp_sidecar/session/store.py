"""What outlives a restart of the relay, on the pod's memory volume.

Written before anything depends on it, each file at once or not at all. The server's container cannot read it.
A relay that cannot write when it starts does not start; one that cannot later on goes on from its memory: the
calls of its clients matter more than a restart that may never come.
"""

import contextlib
import json
import logging
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mcp_sidecar import log

MAX_ENDED = 10_000


class Store:
    """The relay's memory in `directory`; an unreadable file counts as absent.

    Raises:
        OSError: the directory cannot be made, or not be written to, at the start.

    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        handshake = self._read("handshake.json")
        self.starts = _integer(handshake.get("starts")) + 1
        """How often a relay was started on this volume, this one included."""
        self.handshakes = _integer(handshake.get("handshakes"))
        """How often the server was sent `initialize`."""
        self.incarnation = str(handshake.get("incarnation", ""))
        self.request_id = _integer(handshake.get("requestId"))
        """The id of the request that began the conversation."""
        asked = handshake.get("asked")
        self.asked = asked if isinstance(asked, str) else "initialize"
        """The method of that request: `initialize` or `server/discover`."""
        answer = handshake.get("answer")
        self.answer: dict[str, Any] | None = answer if isinstance(answer, dict) else None
        """The result of `initialize`, as the server of `incarnation` gave it."""
        since = handshake.get("since")
        self.since = float(since) if isinstance(since, int | float) and 0 <= since < 2**32 else 0.0
        refused = handshake.get("refused")
        self.refused: dict[str, str] | None = refused if isinstance(refused, dict) else None
        """Why the server of `incarnation` cannot be used."""
        self.interests: Mapping[str, Any] = self._read("interests.json")
        self._ended = deque(self._ended_lines(), MAX_ENDED)
        self._ended_set = set(self._ended)
        self._unwritten = len(self._ended)
        self._failed: set[str] = set()
        self._replace("handshake.json", self._handshake())

    def begin(self, incarnation: str, request_id: int, asked: str = "initialize") -> None:
        """A new process is about to be asked how it can be used."""
        self.asked = asked
        self.incarnation, self.request_id, self.answer, self.refused = incarnation, request_id, None, None
        self.handshakes += 1
        self._save_handshake()

    def ask(self, request_id: int, asked: str) -> None:
        """The process is about to be asked in another way."""
        self.request_id, self.asked = request_id, asked
        self._save_handshake()

    def finish(self, answer: dict[str, Any], since: float) -> None:
        """The process answered."""
        self.answer, self.since = answer, since
        self._save_handshake()

    def refuse(self, problem: dict[str, str]) -> None:
        """The process answered, but with nothing usable."""
        self.refused = problem
        self._save_handshake()

    def save_interests(self, interests: Mapping[str, Any]) -> None:
        """Keep subscriptions and log levels."""
        self._keep("interests.json", lambda: self._replace("interests.json", _json(interests)))

    def keys(self) -> bytes:
        """The key set of the clients' token issuer that was in use last; empty if there is none."""
        try:
            return (self._directory / "keys.json").read_bytes()
        except OSError:
            return b""

    def save_keys(self, document: bytes) -> None:
        """Keep a key set."""
        self._keep("keys.json", lambda: self._replace("keys.json", document.decode("ascii")))

    def end_session(self, key: str) -> None:
        """Remember that a client's session ended, though its id still proves itself."""
        if key in self._ended_set:
            return
        if len(self._ended) == MAX_ENDED:
            self._ended_set.discard(self._ended[0])
        self._ended.append(key)
        self._ended_set.add(key)
        if not self._keep("ended", lambda: self._append_ended(key)):
            self._unwritten = 2 * MAX_ENDED  # the file may end in half a line: write it anew the next time

    def is_ended(self, key: str) -> bool:
        """Whether that session ended."""
        return key in self._ended_set

    def _append_ended(self, key: str) -> None:
        self._unwritten += 1
        if self._unwritten > 2 * MAX_ENDED:
            self._replace("ended", "".join(f"{ended}\n" for ended in self._ended))
            self._unwritten = len(self._ended)
            return
        with (self._directory / "ended").open("a", encoding="ascii") as file:
            file.write(f"{key}\n")

    def _ended_lines(self) -> list[str]:
        try:
            return (self._directory / "ended").read_text(encoding="ascii").split()
        except (OSError, UnicodeDecodeError):
            return []

    def _save_handshake(self) -> None:
        self._keep("handshake.json", lambda: self._replace("handshake.json", self._handshake()))

    def _handshake(self) -> str:
        return _json(
            {
                "starts": self.starts,
                "handshakes": self.handshakes,
                "incarnation": self.incarnation,
                "requestId": self.request_id,
                "asked": self.asked,
                "answer": self.answer,
                "since": self.since,
                "refused": self.refused,
            }
        )

    def _read(self, name: str) -> dict[str, Any]:
        path = self._directory / name
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            log.event("state_unreadable", logging.ERROR, file=name, error=str(error))
            return {}
        return data if isinstance(data, dict) else {}

    def _keep(self, name: str, write: Callable[[], None]) -> bool:
        """Write a file; a failure is logged once, until it works again."""
        try:
            write()
        except OSError as error:
            if name not in self._failed:
                log.event("state_not_written", logging.ERROR, file=name, error=str(error))
                self._failed.add(name)
            return False
        self._failed.discard(name)
        return True

    def _replace(self, name: str, text: str) -> None:
        draft = self._directory / f"{name}.new"
        try:
            draft.write_text(text, encoding="utf-8")
            draft.replace(self._directory / name)
        except OSError:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)  # half a draft takes the room that others need
            raise


def _json(data: Mapping[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":"))


def _integer(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
