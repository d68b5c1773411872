"""The tokens that clients may use, read again when their file changes: a rotation needs no new pod."""

import hmac
import logging
from collections.abc import Callable
from pathlib import Path

from mcp_relay_api import paths
from mcp_sidecar import log
from mcp_sidecar.core import access

LOOK_SECONDS = 1.0


class Tokens:
    """One token a line; each of them is valid.

    `file` is looked at with the requests, at most once in LOOK_SECONDS; one that cannot be read or is empty
    changes nothing.
    """

    def __init__(self, text: bytes, file: Path | None, clock: Callable[[], float]) -> None:
        self._file = file
        self._clock = clock
        self._valid = _parsed(text)
        self._expected = _headers(self._valid)
        self._seen = self._stamp()
        self._next = clock() + LOOK_SECONDS
        self._changed = False

    def changed(self) -> bool:
        """Whether the tokens are others since this was asked last."""
        if self._file is not None:
            self._look()
        changed, self._changed = self._changed, False
        return changed

    def accept(self, header: bytes | None) -> bool:
        """Whether an Authorization header has a valid token. Takes as long for one that is nearly right."""
        if self._file is not None and self._clock() >= self._next:
            self._look()
        if header is None:
            return False
        for expected in self._expected:
            if hmac.compare_digest(header, expected):
                return True
        return any(access.bearer_ok(header, token) for token in self._valid)

    def _look(self) -> None:
        self._next = self._clock() + LOOK_SECONDS
        stamp = self._stamp()
        if stamp is None or stamp == self._seen or self._file is None:
            return
        try:
            found = _parsed(self._file.read_bytes())
        except OSError as error:
            log.event("token_unreadable", logging.WARNING, error=str(error.strerror))
            return
        self._seen = stamp
        if found and found != self._valid:
            self._valid, self._expected, self._changed = found, _headers(found), True
            log.event("tokens_changed", valid=len(found))

    def _stamp(self) -> tuple[int, ...] | None:
        """What changes with the file's content; None if there is no file."""
        try:
            found = self._file.stat() if self._file is not None else None
        except OSError:
            return None
        return None if found is None else (found.st_ino, found.st_mtime_ns, found.st_size)


def _parsed(text: bytes) -> tuple[bytes, ...]:
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if line)[: paths.MAX_TOKENS]


def _headers(tokens: tuple[bytes, ...]) -> tuple[bytes, ...]:
    return tuple(b"Bearer " + token for token in tokens)
