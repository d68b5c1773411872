"""What outlives a restart of the relay, on the pod's memory volume.

Written before anything depends on it, each file at once or not at all. The server's container cannot read it.
"""

import json
import logging
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp_sidecar import log

MAX_ENDED = 10_000


class Store:
    """The relay's memory in `directory`; an unreadable file counts as absent."""

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
        """The id of the last `initialize`."""
        answer = handshake.get("answer")
        self.answer: dict[str, Any] | None = answer if isinstance(answer, dict) else None
        """The result of `initialize`, as the server of `incarnation` gave it."""
        self.since = float(handshake.get("since") or 0)
        refused = handshake.get("refused")
        self.refused: dict[str, str] | None = refused if isinstance(refused, dict) else None
        """Why the server of `incarnation` cannot be used."""
        self.interests: Mapping[str, Any] = self._read("interests.json")
        self._ended = deque(self._ended_lines(), MAX_ENDED)
        self._ended_set = set(self._ended)
        self._unwritten = len(self._ended)
        self._save_handshake()

    def begin(self, incarnation: str, request_id: int) -> None:
        """A new process is about to be sent `initialize`."""
        self.incarnation, self.request_id, self.answer, self.refused = incarnation, request_id, None, None
        self.handshakes += 1
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
        self._write("interests.json", interests)

    def end_session(self, key: str) -> None:
        """Remember that a client's session ended, though its id still proves itself."""
        if key in self._ended_set:
            return
        if len(self._ended) == MAX_ENDED:
            self._ended_set.discard(self._ended[0])
        self._ended.append(key)
        self._ended_set.add(key)
        self._append_ended(key)

    def is_ended(self, key: str) -> bool:
        """Whether that session ended."""
        return key in self._ended_set

    def _append_ended(self, key: str) -> None:
        path = self._directory / "ended"
        self._unwritten += 1
        if self._unwritten > 2 * MAX_ENDED:
            self._replace(path, "".join(f"{ended}\n" for ended in self._ended))
            self._unwritten = len(self._ended)
            return
        with path.open("a", encoding="ascii") as file:
            file.write(f"{key}\n")

    def _ended_lines(self) -> list[str]:
        try:
            return (self._directory / "ended").read_text(encoding="ascii").split()
        except (OSError, UnicodeDecodeError):
            return []

    def _save_handshake(self) -> None:
        self._write(
            "handshake.json",
            {
                "starts": self.starts,
                "handshakes": self.handshakes,
                "incarnation": self.incarnation,
                "requestId": self.request_id,
                "answer": self.answer,
                "since": self.since,
                "refused": self.refused,
            },
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

    def _write(self, name: str, data: Mapping[str, Any]) -> None:
        self._replace(self._directory / name, json.dumps(data, separators=(",", ":")))

    def _replace(self, path: Path, text: str) -> None:
        draft = path.with_name(path.name + ".new")
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)


def _integer(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
