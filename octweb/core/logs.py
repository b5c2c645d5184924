"""Format log lines as text or JSON, with the id of the request."""

from __future__ import annotations

import json
import logging
import re
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

import orjson

# id of the request that this thread handles, "" outside of requests
REQUEST_ID: ContextVar[str] = ContextVar("octweb_request_id", default="")
FIELDS = "octweb_fields"  # attribute of a log record with further members of its JSON object
# a line of text stays one line, whatever names it quotes
CONTROLS = {code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)}
# what follows these addresses opens an account or a page without a sign-in
SECRET_ADDRESSES = re.compile(r"(/accounts/reset/|/public/)[^\s'\"\\]+")


def hide_secrets(text: str) -> str:
    """Replace the secret part of addresses in a text."""
    return SECRET_ADDRESSES.sub(r"\1…", text)


class LineFormatter(logging.Formatter):
    """Formatter of text lines. The id of the request stands in brackets before the message."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = record.message.translate(CONTROLS)
        request_id = REQUEST_ID.get()
        if request_id:
            record.message = f"[{request_id}] {record.message}"
        return hide_secrets(super().formatMessage(record))


class JsonFormatter(logging.Formatter):
    """Formatter of one JSON object per line.

    An exception is logged with its type and the places of its traceback, but without its text, which may quote a cell of
    a table or a name.
    """

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        request_id = REQUEST_ID.get()
        if request_id:
            entry["request_id"] = request_id
        entry |= getattr(record, FIELDS, {})
        if record.exc_info and record.exc_info[0] is not None:
            entry["exception"] = record.exc_info[0].__name__
            entry["places"] = [
                f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(record.exc_info[2])
            ]
        try:
            line = orjson.dumps(entry, default=str).decode()
        except TypeError:  # it refuses half characters, as in names of files that are not UTF-8
            line = json.dumps(entry, default=str)
        return hide_secrets(line)


def log_settings(style: str, *, level: str, access: bool) -> dict[str, Any]:
    """Return Django's LOGGING. `style` is "text" or "json"; `access` turns the access log on."""
    line = {"()": LineFormatter, "format": "{asctime} {levelname} {name} {message}", "style": "{"}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"text": line, "json": {"()": JsonFormatter}},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": style}},
        "root": {"handlers": ["console"], "level": level},
        "loggers": {
            "axes": {"level": "WARNING"},
            "numexpr": {"level": "WARNING"},
            "octweb.access": {"level": "INFO" if access else "CRITICAL"},
        },
    }
