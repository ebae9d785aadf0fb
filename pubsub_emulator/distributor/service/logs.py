"""Structured logs: one JSON object a line, without keys, tokens, secrets or bodies."""

import json
import logging
import sys
import time

from pubsub_emulator.primitives.shown import whole


class JsonLines(logging.Formatter):
    """A record as a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, object] = {
            "time": f"{seconds}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            line.update({name: value for name, value in fields.items() if value != ""})
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return whole(json.dumps(line, ensure_ascii=False, default=str))


def log_lines() -> None:
    """Write the logs of this program to standard error, from level INFO on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger("pubsub")
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    root.propagate = False
