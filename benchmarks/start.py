"""Cold and warm start of a training: processor seconds of `manage.py train` on iris, first without and then with compiled kernels.

Usage: python benchmarks/start.py [--method bivariate] [--ready build/ready]

With --ready a third number: the first start with the kernels that `python -m tools.ready` compiled ahead, as from the wheel.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def iris(path: Path) -> None:
    from sklearn.datasets import load_iris

    data = load_iris()
    lines = [",".join([*data.feature_names, "species"])]
    lines += [
        ",".join([*map(str, row), str(data.target_names[k])]) for row, k in zip(data.data, data.target, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")


def processor_seconds(command: list[str], environment: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


WITH_READY = """
import sys
from pathlib import Path
from trainer import ready
ready.FOLDER = Path(sys.argv.pop(1))
import os
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "octweb.settings")
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", action="append", help="default: every method that needs no solver")
    parser.add_argument("--ready", type=Path, help="a folder of kernels that were compiled ahead")
    given = parser.parse_args()
    heads = [
        "method",
        "first start, s",
        *(["first start, shipped kernels, s"] if given.ready else []),
        "second start, s",
    ]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for method in given.method or ["cart", "bivariate", "exact"]:
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "iris.csv"
            iris(data)
            variables = os.environ | {"OCTWEB_DATA_DIR": folder, "PYTHONPATH": str(ROOT)}
            empty = [variables | {"NUMBA_CACHE_DIR": str(Path(folder) / name)} for name in ("one", "two")]
            arguments = ["train", str(data), "--target=species", f"--method={method}"]
            command = [sys.executable, str(ROOT / "manage.py"), *arguments]
            figures = [processor_seconds(command, empty[0])]
            if given.ready:
                shipped = [sys.executable, "-c", WITH_READY, str(given.ready.resolve()), *arguments]
                figures.append(processor_seconds(shipped, empty[1]))
            figures.append(min(processor_seconds(command, empty[0]) for _ in range(3)))
            print(f"| {method} | {' | '.join(f'{figure:.2f}' for figure in figures)} |", flush=True)


if __name__ == "__main__":
    main()
