"""Time cold and warm starts of `manage.py train` on iris.

Usage: python benchmarks/start.py [--method bivariate] [--depth 2] [--ready build/ready [--no-bare]]

Processor seconds, first without and then with compiled kernels. --ready adds the first start with the kernels that
`python -m tools.ready` compiled ahead, as the wheel has them, and lists the kernels still compiled at run time.
--no-bare leaves out the start without any compiled kernels.
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
sys.path.insert(0, str(ROOT))
from trainer.registry import METHODS  # noqa: E402  (after the path is set)


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
from trainer import precompiled
precompiled.FOLDER = Path(sys.argv.pop(1))
import os
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "octweb.settings")
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""


def compiled_in(folder: Path) -> list[str]:
    """Return the names of the kernels that numba compiled at run time into a cache folder."""
    return sorted({path.name.partition("-")[0] for path in folder.rglob("*.nbc")})


def measure_starts(method: str, depth: int | None, ready: Path | None, bare: bool) -> tuple[list[float], list[str]]:
    """Measure cold and warm starts of a training.

    Returns the processor seconds in the order of the columns, and the kernels compiled at run time.
    """
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "iris.csv"
        iris(data)
        variables = os.environ | {"OCTWEB_DATA_DIR": folder, "PYTHONPATH": str(ROOT)}
        empty = [variables | {"NUMBA_CACHE_DIR": str(Path(folder) / name)} for name in ("one", "two")]
        arguments = ["train", str(data), "--target=species", f"--method={method}"]
        arguments += [f"--depth={depth}"] if depth else []
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        figures = []
        compiled = []
        if bare:
            figures.append(processor_seconds(command, empty[0]))
        if ready:
            shipped = [sys.executable, "-c", WITH_READY, str(ready.resolve()), *arguments]
            figures.append(processor_seconds(shipped, empty[1]))
            compiled = compiled_in(Path(folder) / "two")
            command, empty[0] = (command, empty[0]) if bare else (shipped, empty[1])
        figures.append(min(processor_seconds(command, empty[0]) for _ in range(2)))
    return figures, compiled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", action="append", help="default: every method")
    parser.add_argument("--depth", type=int, help="default: the method's own")
    parser.add_argument("--ready", type=Path, help="a folder of kernels that were compiled ahead")
    parser.add_argument("--no-bare", action="store_true", help="no start without compiled kernels; needs --ready")
    options = parser.parse_args()
    if options.no_bare and not options.ready:
        parser.error("--no-bare needs --ready")
    bare = not options.no_bare
    heads = ["method", *(["first start, s"] if bare else [])]
    heads += [*(["first start, shipped kernels, s"] if options.ready else []), "second start, s"]
    heads += ["compiled at run time"] if options.ready else []
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for method in options.method or [method.id for method in METHODS]:
        figures, compiled = measure_starts(method, options.depth, options.ready, bare)
        cells = [f"{figure:.2f}" for figure in figures] + ([", ".join(compiled) or "none"] if options.ready else [])
        print(f"| {method} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
