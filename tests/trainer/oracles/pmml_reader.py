"""Evaluate the PMML files of a folder with jpmml-evaluator, in a separate process that test_pmml starts.

For NAME.pmml it reads NAME.rows.json (a list of rows) and writes NAME.out.json: for each row a dictionary of outputs,
or null if jpmml refuses a value.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from jpmml_evaluator import JavaError, make_evaluator
from jpmml_evaluator.jpype import JPypeBackend

# The work takes about a second, so code must compile quickly, and one thread is enough for garbage collection.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def main(folder: Path) -> None:
    os.environ["JAVA_TOOL_OPTIONS"] = QUICK
    backend = JPypeBackend()
    for path in sorted(folder.glob("*.pmml")):
        evaluator = make_evaluator(str(path), backend=backend)
        evaluator.verify()
        inputs = {field.name for field in evaluator.getInputFields()}
        rows = json.loads(path.with_suffix(".rows.json").read_text())
        out = [answer(evaluator, {k: v for k, v in row.items() if k in inputs}) for row in rows]
        path.with_suffix(".out.json").write_text(json.dumps(out, default=str))


def answer(evaluator: Any, row: dict[str, Any]) -> dict[str, Any] | None:
    try:
        return evaluator.evaluate(row)
    except JavaError as error:
        if "cannot accept invalid value" not in str(error):
            raise
        return None


if __name__ == "__main__":
    main(Path(sys.argv[1]))
