"""Write gunicorn's own messages as JSON. Commands must not import gunicorn, so this is not in `logs`."""

from __future__ import annotations

from typing import Any

from gunicorn.glogging import Logger

from octweb.core.logs import JsonFormatter


class JsonLogger(Logger):
    """Logger class of gunicorn for OCTWEB_LOG_FORMAT=json."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(JsonFormatter())
