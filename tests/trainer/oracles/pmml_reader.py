"""Evaluate the PMML files of a folder with jpmml-evaluator, in a separate process that test_pmml starts.

For NAME.pmml it reads NAME.rows.json (a list of rows) and writes NAME.out.json (one dictionary of outputs for each
row).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from jpmml_evaluator import make_evaluator
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
        out = [evaluator.evaluate({k: v for k, v in row.items() if k in inputs}) for row in rows]
        path.with_suffix(".out.json").write_text(json.dumps(out, default=str))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
