"""Write the checker as one file that runs with NumPy alone.

`python check_octweb.py MODEL PROOF DATA` runs it. The file holds the sources of `trainer.check.proof`, `trainer.check.recount` and
`trainer.errors` word for word, so that they can be read and compared. A small loader imports them from there.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAD = '''#!/usr/bin/env python3
"""Check a model of octweb, with its proof, against the rows that it was trained on.

    python check_octweb.py MODEL.json PROOF.jsonl.gz DATA.csv
    python check_octweb.py MODEL.json - DATA.csv            (without a proof)

Needs Python 3.11 or later and NumPy; Parquet files need pyarrow. Exit status: 0 proved, 3 recounted, 1 refuted, 2 cannot be judged
or a file that cannot be read. The modules of the checker follow word for word: those named trainer.check.proof check the proof, those named
trainer.check.recount read the rows and count again what else the file claims. The loader stands at the end.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # many small products: threads only cost time

SOURCES = {}
'''
TAIL = '''

# -- loader --------------------------------------------------------------------------------------------------------------

import importlib.abc
import importlib.machinery
import linecache
import sys


class _Embedded(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import the modules of this file, and never installed modules of the same name."""

    def find_spec(self, name, path=None, target=None):
        if name not in SOURCES:
            return None
        package = any(other.startswith(name + ".") for other in SOURCES)
        return importlib.machinery.ModuleSpec(name, self, is_package=package)

    def exec_module(self, module):
        name = module.__name__
        place = f"<{name}>"
        linecache.cache[place] = (len(SOURCES[name]), None, SOURCES[name].splitlines(True), place)
        exec(compile(SOURCES[name], place, "exec"), module.__dict__)


def print_unjudged(reason):
    print(reason, file=sys.stderr)
    print("Verdict: cannot be judged")
    return 2


def main(arguments):
    if len(arguments) != 3:
        print("usage: python check_octweb.py MODEL.json PROOF.jsonl.gz DATA.csv   ('-' in place of a proof: none)", file=sys.stderr)
        return 2
    sys.meta_path.insert(0, _Embedded())
    from trainer.errors import TrainerError
    from trainer.check.recount import verdict, verify

    model, proof, data = arguments
    try:
        findings = verify(model, data, None if proof == "-" else proof)
    except OSError as error:
        return print_unjudged(f"The file '{error.filename}' cannot be opened: {error.strerror}.")
    except TrainerError as error:
        return print_unjudged(" ".join(str(error).split()))
    for finding in findings:
        print(f"{finding.verdict:16s} {finding.claim}: {finding.detail}")
    overall = verdict(findings)
    print(f"Verdict: {overall}")
    return {"proved": 0, "recounted": 3, "refuted": 1}.get(overall, 2)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
'''


def bundle() -> str:
    """Write the text of check_octweb.py.

    Raises
    ------
    ValueError
        If a source cannot be quoted as it is.
    """
    sources = {"trainer": "", "trainer.check": "", "trainer.errors": (ROOT / "errors.py").read_text(encoding="utf-8")}
    for package in ("proof", "recount"):
        for path in sorted((ROOT / "check" / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(("trainer", *parts)).removesuffix(".__init__")
            sources[name] = path.read_text(encoding="utf-8")
    return HEAD + "".join(f"\nSOURCES[{name!r}] = {_quote(text)}\n" for name, text in sources.items()) + TAIL


def _quote(source: str) -> str:
    """Return the source as a raw string literal, which stays readable."""
    if "'''" in source or source.endswith("\\"):
        raise ValueError("A module of the checker must not contain three single quotes: they would end its raw string.")
    return f"r'''{source}'''"
