"""Cases and oracles of `test_erasing.py` that other tests use, too."""

from __future__ import annotations

import io
import json
import sys

from octweb.decisions.exporting import export_chain
from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "checker"))
import check_decisions

__all__ = ["check_decisions", "exported"]


def exported():
    stream = io.StringIO()
    export_chain(stream)
    return [json.loads(line) for line in stream.getvalue().splitlines()]
