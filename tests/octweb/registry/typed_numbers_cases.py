"""Cases and oracles of `test_typed_numbers.py` that other tests use, too."""

from __future__ import annotations

import json
from pathlib import Path

EXAMPLES = json.loads(Path(__file__).with_suffix("").with_name("typed_numbers.json").read_text(encoding="utf-8"))
