"""Cases and oracles of `test_erasing.py` that other tests use, too."""

from __future__ import annotations

import io
import json

from octweb.decisions.exporting import export_chain


def exported():
    stream = io.StringIO()
    export_chain(stream)
    return [json.loads(line) for line in stream.getvalue().splitlines()]
