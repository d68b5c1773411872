"""Structured log lines on stderr: one JSON object a line, one line per transition, never a secret."""

import functools
import logging
import time

from mcp_sidecar.core import record as records

_LOGGER = logging.getLogger("mcp_sidecar")


class JsonFormatter(logging.Formatter):
    """Renders a record as one JSON object; fields given by `event` stand beside time and level."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON."""
        line: dict[str, object] = {
            "time": stamp(record.created),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return records.line(line)


def stamp(seconds: float) -> str:
    """A time since the epoch as RFC 3339 with milliseconds, in UTC."""
    whole = int(seconds)
    return f"{_second(whole)}.{int((seconds - whole) * 1000):03d}Z"


@functools.lru_cache(maxsize=1)
def _second(whole: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))


def configure() -> None:
    """Send all logging to stderr in this form."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    _LOGGER.setLevel(logging.INFO)


def event(name: str, level: int = logging.INFO, **fields: object) -> None:
    """Log one event with its fields."""
    _LOGGER.log(level, name, extra={"fields": fields})


def failure(name: str, error: BaseException | None) -> None:
    """Log a defect of the relay itself, with its traceback."""
    _LOGGER.error(name, exc_info=error)
