"""Structured log lines on stderr: one JSON object a line, one line per transition, never a secret."""

import json
import logging
import time

_LOGGER = logging.getLogger("mcp_sidecar")


class JsonFormatter(logging.Formatter):
    """Renders a record as one JSON object; fields given by `event` stand beside time and level."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, object] = {
            "time": f"{stamp}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


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
