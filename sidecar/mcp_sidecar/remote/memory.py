"""What of a session with a remote server outlives a restart of the relay, on the pod's memory volume."""

import contextlib
import json
import logging
from pathlib import Path

from mcp_sidecar import log
from mcp_sidecar.core.target import STREAMABLE
from mcp_sidecar.remote.session import Session

_FIELDS = ("incarnation", "path", "sid", "revision")


class Memory:
    """Keeps one session in a file; its id is a secret, so nobody else may read it."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "remote.json"

    def recall(self) -> Session | None:
        """The session of an earlier relay, not known to be alive; None: there is none."""
        try:
            told = json.loads(self._path.read_text("utf-8"))
            incarnation, path, sid, revision = (str(told[name]) for name in _FIELDS)
            modern = bool(told["modern"])
            return Session(incarnation, STREAMABLE, path, sid, revision, modern, initialized=True)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.event("state_unreadable", logging.ERROR, file=self._path.name, error=str(error))
            return None

    def keep(self, session: Session) -> None:
        """Remember a session that can be gone on with; one over SSE ends with its stream."""
        if session.transport != STREAMABLE:
            self.forget()
            return
        fields = {name: getattr(session, name) for name in _FIELDS} | {"modern": session.modern}
        draft = self._path.with_suffix(".new")
        try:
            draft.touch(mode=0o600)
            draft.write_text(json.dumps(fields), "utf-8")
            draft.replace(self._path)
        except OSError as error:
            log.event("state_not_written", logging.ERROR, file=self._path.name, error=str(error))

    def forget(self) -> None:
        """There is no such session any more."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
